"""Compares what a SavedModel answers with the predictions that run_classifier wrote, and times it.

run_classifier --do_predict writes dev_predictions.tsv and test_predictions.tsv for files of one's
own: each text with its label and probabilities, or its number. The same texts, as they stand in
that table, are given to the SavedModel that was exported from the same model.

Example:
  keras-bert run_classifier --dev_file=dev.csv --do_predict --init_checkpoint=mine/model
      --output_dir=answers
  keras-bert export_saved_model --model=mine/model --output_dir=served
  python -m tools.benchmarks.served_labels --saved_model=served --trust_saved_model
      --predictions_file=answers/dev_predictions.tsv
"""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import REQUIRED, check_options, option
from keras_bert_impl.serving.config import SavedModelTrust
from tools import command_line
from tools.config_flags import ConfigFlags

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_SHOWN = 5

Row = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class ServedLabelsConfig(SavedModelTrust):
    """What is compared."""

    saved_model: Path = option(REQUIRED, "The SavedModel.")
    predictions_file: Path = option(REQUIRED, "The predictions of run_classifier (.tsv).")
    batch_size: int = option(32, "Texts of a call.", at_least=1)

    def __post_init__(self) -> None:
        check_options(self)


FLAGS = ConfigFlags(__doc__, ServedLabelsConfig)


@dataclass(frozen=True)
class Answer:
    """What one text got: a label (several: a JSON list; a number: none), and its numbers."""

    label: str
    values: tuple[float, ...]


def read_answers(path: Path) -> list[tuple[Row, Answer]]:
    """The rows of a table of predictions, each with its answer.

    Raises:
        UserError: the file is missing, or no such table.
    """
    from pipelines.tables.files import open_table

    rows: list[Row] = [record.values for record in open_table(str(path), quotation="yes").records()]
    if not rows or not {"text", "prediction"} <= set(rows[0]):
        raise UserError(f"{path}: is no table of predictions that run_classifier wrote.")
    return [(row, _offline(row)) for row in rows]


def _offline(row: Row) -> Answer:
    values = tuple(float(row[name]) for name in row if name.startswith("P("))
    if values:
        return Answer(row["prediction"], values)
    return Answer("", (float(row["prediction"]),))


def served_answers(
    ask: "Callable[..., dict[str, Any]]", rows: Sequence[Row], batch_size: int
) -> Iterator[Answer]:
    """What a SavedModel's text signature answers for the rows, in order."""
    import tensorflow as tf

    def texts(some: Sequence[Row], column: str) -> Any:
        return tf.constant([row[column] for row in some])

    for start in range(0, len(rows), batch_size):
        some = rows[start : start + batch_size]
        if "text_pair" in some[0]:
            found = ask(text_a=texts(some, "text"), text_b=texts(some, "text_pair"))
        else:
            found = ask(text=texts(some, "text"))
        yield from _answers({name: np.asarray(value) for name, value in found.items()})


def _answers(found: Mapping[str, Any]) -> Iterator[Answer]:
    if "score" in found:
        yield from (Answer("", (float(number),)) for number in found["score"])
        return
    for row, values in enumerate(found["probabilities"].tolist()):
        if "label" in found:
            label = found["label"][row].decode()
        else:
            held = [name.decode() for name in found["labels"][row] if name]
            label = json.dumps(held, ensure_ascii=False)
        yield Answer(label, tuple(values))


def _run() -> None:
    config = FLAGS.config()
    from keras_bert_impl.serving.signatures import load_signature

    table = read_answers(config.predictions_file)
    rows = [row for row, _ in table]
    signature = "text_pair" if "text_pair" in rows[0] else "text"
    ask = load_signature(
        config.saved_model,
        signature,
        "a model for labels",
        trusted=config.trust_saved_model,
    )
    list(
        served_answers(ask, rows[: config.batch_size], config.batch_size)
    )  # traces, outside the time
    start = time.perf_counter()
    served = list(served_answers(ask, rows, config.batch_size))
    seconds = time.perf_counter() - start
    furthest = max(
        abs(one - other)
        for (_, offline), answer in zip(table, served, strict=True)
        for one, other in zip(offline.values, answer.values, strict=True)
    )
    differing = [
        (row["text"], offline, answer)
        for (row, offline), answer in zip(table, served, strict=True)
        if offline.label != answer.label
    ]
    print(f"{len(table) - len(differing)} of {len(table)} labels are the same")
    for text, offline, answer in differing[:_MOST_SHOWN]:
        print(f"  {text[:60]!r}: {offline} offline, {answer} served")
    print(f"probabilities and numbers differ by {furthest:.1e} at most")
    print(f"{len(table) / seconds:.1f} texts a second, {config.batch_size} texts a call")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
