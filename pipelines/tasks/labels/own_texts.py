"""A user's labelled texts as a task: classes, several labels at once, or numbers, from any file.

Labels are found in the training file, and kept in the model directory (`id2label`).
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_impl.json_files import json_text
from keras_bert_impl.pictures import write_png
from keras_bert_impl.tokenization.long_texts import LongTexts
from pipelines.fine_tuning import heads
from pipelines.fine_tuning.text_rows import TextExample
from pipelines.metrics import classification
from pipelines.tables.writing import digits, hardest, write_table
from pipelines.tasks.labels.labelling import Kind, Source, is_empty, labels_in, text_key
from pipelines.tasks.labels.rows import LabelAnswer, Labelled, LabelTask

_MOST_MISTAKES = 1000  # that are written, the hardest ones
_MOST_DRAWN = 40  # classes in a picture
_CLASS_COLUMNS = ("label", "examples", "predicted", "precision", "recall", "f1")


@dataclass(frozen=True)
class HeldOut:
    """Which rows of the training file are its dev set: those with a hash below their label's."""

    thresholds: Mapping[str, int]
    seed: int

    def has(self, source: Source, example: TextExample) -> bool:
        held = labels_in(source.labelling, example.label or "")
        threshold = self.thresholds.get(held[0] if held else "", 0)
        return text_key(self.seed, example.text_a, example.text_b) < threshold


@dataclass(frozen=True)
class LabelledTexts(LabelTask):
    """The task of one's own files; for units of labels see `LabelUnits`."""

    kind: Kind
    labels: tuple[str, ...]  # in the order of the classes; () of a regression
    sources: Mapping[str, Source]  # of each split; with `held_out` "dev" is a part of "train"
    options: Mapping[str, Any] = field(default_factory=dict)
    long_texts: LongTexts = field(default_factory=LongTexts)
    held_out: HeldOut | None = None
    class_weights: tuple[float, ...] | None = None
    label_units: tuple[float, float] | None = None
    name: str = "labelled texts"
    train_split: str = "train"

    @property
    def evaluation_splits(self) -> list[str]:
        return [s for s in ("dev", "test") if s in self.sources and self.sources[s].labelling]

    @property
    def test_splits(self) -> list[str]:
        return [split for split in ("test", "dev") if split in self.sources]

    @property
    def settings(self) -> dict[str, Any]:
        digest = zlib.crc32(json_text(self.labels).encode())
        own = {**self.options, **self.long_texts.settings, "kind": self.kind}
        own["labels_crc32"] = f"{digest:08x}"
        if self.class_weights:
            own["class_weights"] = dict(zip(self.labels, self.class_weights, strict=True))
        return {**own, **self.head_of.settings}

    @property
    def num_texts(self) -> int:
        return len(next(iter(self.sources.values())).columns.texts)

    @cached_property
    def head_of(self) -> heads.LabelHead:  # type: ignore[override]  # frozen: never assigned
        if self.kind == "number":
            return heads.RegressionHead(units=self.label_units)
        if self.kind == "one":
            return heads.ClassificationHead({x: x for x in self.labels}, self.class_weights)
        return heads.MultiLabelHead(self.labels, self.class_weights)

    def files(self, split: str) -> list[Path]:
        return self.sources[split].file.paths()

    def examples(self, split: str) -> Iterator[TextExample]:
        """Reads a split; rows without text are left out of training. See `Task.examples`."""
        source = self.sources[split]
        return (one for one in source.examples() if self._is_of(split, source, one))

    def _is_of(self, split: str, source: Source, example: TextExample) -> bool:
        cut = self.held_out if split in ("train", "dev") else None
        if (split == "train" or cut) and is_empty(example):
            return False
        return cut is None or cut.has(source, example) == (split == "dev")

    def score(self, answered: Labelled) -> dict[str, float]:
        labels, predictions = self._decisions(answered)
        if self.kind != "number":
            return classification.class_figures(labels, predictions)
        errors = predictions - labels
        return {
            "pearson": classification.pearson_correlation(predictions, labels),
            "spearman": classification.spearman_correlation(predictions, labels),
            "mean_squared_error": float(np.mean(errors**2)),
            "mean_absolute_error": float(np.mean(np.abs(errors))),
        }

    def illustrate(self, folder: Path, split: str, answered: Labelled) -> list[Path]:
        if self.kind == "number":
            return []
        decisions = self._decisions(answered)
        figures = classification.figures_by_class(*decisions, len(self.labels))
        rows = (
            [label, *one[:2], *(f"{share:.4f}" for share in one[2:])]
            for label, one in zip(self.labels, figures, strict=True)
        )
        files = [write_table(folder / f"{split}_classes.tsv", _CLASS_COLUMNS, rows)]
        if self.kind == "one":
            path = folder / f"{split}_confusion.png"
            files.append(draw_confusion(path, self.labels, *decisions))
        return files

    def write(self, folder: Path, split: str, answered: Labelled) -> list[Path]:
        """Writes all predictions, and of labelled files the hardest mistakes; see `Task.write`."""
        labelled = self.sources[split].labelling is not None
        header = [*self._row(labelled, *next(iter(answered)))]
        rows = ([*self._row(labelled, *one).values()] for one in answered)
        files = [write_table(folder / f"{split}_predictions.tsv", header, rows)]
        if labelled:
            worst = hardest(answered, self._mistake, _MOST_MISTAKES)
            rows = ([*self._row(labelled, *one).values()] for one in worst)
            files.append(write_table(folder / f"{split}_mistakes.tsv", header, rows))
        return files

    def _decisions(self, answered: Labelled) -> tuple[np.ndarray, np.ndarray]:
        """The labels and the predictions: [examples], of several labels [examples, labels]."""
        pairs = [(self._encoded(example), answer.prediction) for example, answer in answered]
        labels, predictions = zip(*pairs, strict=True)
        return np.array(labels), np.array(predictions)

    def _encoded(self, example: TextExample) -> Any:
        """A class, a 0 or 1 for each label, or a number."""
        label = self.head_of.encode(str(example.label))
        return np.asarray(label) if isinstance(label, list) else label

    def _row(self, labelled: bool, example: TextExample, answer: LabelAnswer) -> dict[str, Any]:
        """The columns of an answer in the tables."""
        row: dict[str, Any] = {"line": example.identifier, "text": example.text_a}
        if example.text_b is not None:
            row["text_pair"] = example.text_b
        if labelled:
            row["label"] = example.label
        row["prediction"] = answer.label
        if self.kind == "one":
            row["probability"] = digits(answer.values.max())
        if self.kind != "number":
            for label, share in zip(self.labels, answer.values, strict=True):
                row[f"P({label})"] = digits(share)
        return row

    def _mistake(self, one: tuple[TextExample, LabelAnswer]) -> float | None:
        """How wrong an answer is; None of a right one."""
        example, answer = one
        label = self._encoded(example)
        if self.kind == "one":
            return None if label == answer.prediction else 1.0 - float(answer.values[label])
        right = self.kind != "number" and np.array_equal(answer.prediction, label)
        return None if right else float(np.abs(answer.values - label).max())


def draw_confusion(
    path: Path, names: Sequence[str], labels: np.ndarray, predictions: np.ndarray
) -> Path:
    """Draws a confusion matrix as a picture, of many classes the most frequent ones."""
    from matplotlib.figure import Figure

    counts = np.bincount(np.concatenate([labels, predictions]), minlength=len(names))
    shown = sorted(np.argsort(-counts, kind="stable")[:_MOST_DRAWN].tolist())
    rows = [np.bincount(predictions[labels == label], minlength=len(names)) for label in shown]
    matrix = np.stack(rows)[:, shown]
    titles = [names[n] if len(names[n]) <= 20 else f"{names[n][:19]}…" for n in shown]
    size = 2.5 + 0.45 * len(shown)
    figure = Figure(figsize=(size + 1, size), layout="constrained")
    axes = figure.subplots()
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    picture = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(picture, ax=axes, label="share of the label's examples", shrink=0.8)
    # A label such as $5-$10 is no formula.
    axes.set_xticks(range(len(shown)), titles, rotation=90, parse_math=False)
    axes.set_yticks(range(len(shown)), titles, parse_math=False)
    axes.set_xlabel("prediction")
    axes.set_ylabel("label")
    if len(shown) < len(names):
        axes.set_title(f"the {len(shown)} most frequent of {len(names)} labels")
    for (row, column), number in np.ndenumerate(matrix):
        colour = "white" if shares[row, column] > 0.5 else "black"
        axes.text(column, row, str(number), ha="center", va="center", color=colour, fontsize=8)
    return write_png(path, figure)
