"""Answers as tables and pictures that people read: predictions, the hardest mistakes, confusion."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_impl.pictures import write_png
from pipelines.metrics.classification import ClassFigures, ClassScores

_MOST_SHOWN = 40  # classes in a picture


def class_rows(labels: Sequence[str], figures: ClassFigures) -> Iterator[list[Any]]:
    """The rows of a table with the figures of each class."""
    for label, examples, predicted, *shares in zip(labels, *figures, strict=True):
        yield [label, examples, predicted, *(f"{share:.4f}" for share in shares)]


CLASS_COLUMNS = ("label", "examples", "predicted", "precision", "recall", "f1")


def draw_confusion(path: Path, labels: Sequence[str], scores: ClassScores) -> Path:
    """Draws a confusion matrix as a picture, of many classes the most frequent ones."""
    from matplotlib.figure import Figure

    figures = scores.by_class()
    order = np.argsort(-(figures.examples + figures.predicted), kind="stable")
    shown = sorted(order[:_MOST_SHOWN].tolist())
    matrix, names = scores.matrix(shown), [_short(labels[number]) for number in shown]
    size = 2.5 + 0.45 * len(shown)
    figure = Figure(figsize=(size + 1, size), layout="constrained")
    axes = figure.subplots()
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    picture = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(picture, ax=axes, label="share of the label's examples", shrink=0.8)
    # A label such as $5-$10 is no formula.
    axes.set_xticks(range(len(shown)), names, rotation=90, parse_math=False)
    axes.set_yticks(range(len(shown)), names, parse_math=False)
    axes.set_xlabel("prediction")
    axes.set_ylabel("label")
    if len(shown) < len(labels):
        axes.set_title(f"the {len(shown)} most frequent of {len(labels)} labels")
    for (row, column), number in np.ndenumerate(matrix):
        colour = "white" if shares[row, column] > 0.5 else "black"
        axes.text(column, row, str(number), ha="center", va="center", color=colour, fontsize=8)
    return write_png(path, figure)


def _short(label: str) -> str:
    return label if len(label) <= 20 else f"{label[:19]}…"
