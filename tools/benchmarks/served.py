"""Compares what a SavedModel answers with what a run wrote of the same model, and times it.

Labels: run_classifier --do_predict writes dev_predictions.tsv and test_predictions.tsv for files of
one's own: each text with its label and probabilities, or its number. The same texts, as they stand
in that table, are given to the SavedModel.

Questions (--data_file): run_squad --do_eval writes answers.tsv, with the position of every answer.
An answer is the same where it starts and ends at the same characters. Between two answers that are
equally good to the last digit the length of a batch may decide; the odds of what differs are shown.
Questions about passages of like lengths are asked together.

--part=2/8 asks the second eighth only, every eighth row, so that a whole dev set may be asked in
several short calls.

Example:
  keras-bert run_classifier --dev_file=dev.csv --do_predict --init_checkpoint=mine/model
      --output_dir=answers
  keras-bert export_saved_model --model=mine/model --output_dir=served
  python -m tools.benchmarks.served --saved_model=served --trust_saved_model
      --answers_file=answers/dev_predictions.tsv
  python -m tools.benchmarks.served --saved_model=served --trust_saved_model
      --answers_file=squad/answers.tsv --data_file=dev-v1.1.json
"""

import csv
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import REQUIRED, check_options, option
from keras_bert_impl.serving.config import SavedModelTrust
from pipelines.fine_tuning.served_answers import Answer, Arrays, Comparison, compare_served
from tools.config_flags import ConfigFlags

_MOST_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class ServedConfig(SavedModelTrust):
    """The options of the comparison."""

    saved_model: Path = option(REQUIRED, "The SavedModel.")
    answers_file: Path = option(
        REQUIRED, "The predictions of run_classifier (.tsv), or answers.tsv of run_squad."
    )
    data_file: Path | None = option(None, "The questions of answers.tsv, in SQuAD's form.")
    version_2_with_negative: bool = option(False, "Questions may have no answer.")
    batch_size: int = option(16, "Texts or questions of a call.", at_least=1)
    part: str = option("1/1", "Which part of the rows, of how many.")

    def __post_init__(self) -> None:
        check_options(self)
        number, parts = self.which_part
        if not 1 <= number <= parts:
            raise UserError(f"`part={self.part}` is none; give one such as 2/8.")

    @property
    def which_part(self) -> tuple[int, int]:
        """The number of the part, from 1, and how many there are; (0, 0) where it is none."""
        found = re.fullmatch(r"(\d+)/(\d+)", self.part)
        return (int(found[1]), int(found[2])) if found else (0, 0)


FLAGS = ConfigFlags(__doc__, ServedConfig)


def of_labels(config: ServedConfig) -> Comparison:
    """The texts of a table that run_classifier wrote.

    Raises:
        UserError: the file is missing, or no such table.
    """
    from pipelines.tables.files import open_table

    path, (number, parts) = config.answers_file, config.which_part
    records = open_table(str(path), quotation="yes").records()
    rows = [record.values for record in islice(records, number - 1, None, parts)]
    if not rows or not {"text", "prediction"} <= set(rows[0]):
        raise UserError(f"{path}: is no table of predictions that run_classifier wrote.")
    texts = [row["text"] for row in rows]
    inputs: Mapping[str, Sequence[str]] = {"text": texts}
    if is_of_pairs := "text_pair" in rows[0]:
        inputs = {"text_a": texts, "text_b": [row["text_pair"] for row in rows]}
    offline, signature = list(map(_label_in_table, rows)), "text_pair" if is_of_pairs else "text"
    return Comparison("labels", texts, inputs, offline, signature, served_labels)


def _label_in_table(row: Mapping[str, str]) -> Answer:
    values = tuple(float(row[name]) for name in row if name.startswith("P("))
    return Answer(row["prediction"], values) if values else Answer("", (float(row["prediction"]),))


def served_labels(found: Arrays) -> Iterator[Answer]:
    """Labels and probabilities, or numbers, in what a text signature gives.

    Example:
        >>> list(served_labels({"score": [0.5]}))
        [Answer(said='', values=(0.5,), note='')]
    """
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


def of_questions(config: ServedConfig) -> Comparison:
    """The questions of a file, with the answers that run_squad wrote.

    Raises:
        UserError: a file is missing, or not what it should be.
    """
    from pipelines.tasks.questions.files import read_questions

    number, parts = config.which_part
    every = read_questions(
        Path(config.data_file or ""), version_2_with_negative=config.version_2_with_negative
    )
    questions = sorted(islice(every, number - 1, None, parts), key=lambda x: len(x.passage.text))
    offline = _positions_in_table(config.answers_file)
    inputs = {
        "question": [one.text for one in questions],
        "passage": [one.passage.text for one in questions],
    }
    names = [one.identifier for one in questions]
    answers = list(map(offline.get, names))
    return Comparison("answers", names, inputs, answers, "serving_default", served_positions)


def _positions_in_table(path: Path) -> dict[str, Answer]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file, delimiter="\t")
            return {row["id"]: Answer((int(row["start"]), int(row["end"]))) for row in rows}
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path}: is no answers.tsv of run_squad ({error!r}).") from error


def served_positions(found: Arrays) -> Iterator[Answer]:
    """Where answers start and end, in what a model for questions gives."""
    odds = found["no_answer_score"] - found["score"]
    for start, end, odd in zip(found["start"], found["end"], odds, strict=True):
        yield Answer((int(start), int(end)), note=f"odds of no answer {odd:.6f}")


def _run(config: ServedConfig) -> None:
    comparison = of_questions(config) if config.data_file else of_labels(config)
    from keras_bert_impl.serving.signatures import load_signature

    kind = "a model for questions" if config.data_file else "a model for labels"
    ask = load_signature(
        config.saved_model, comparison.signature, kind, trusted=config.trust_saved_model
    )
    result = compare_served(ask, comparison, config.batch_size)
    count, what = result.count, comparison.what
    of_part = "" if config.which_part[1] == 1 else f" (part {config.part})"
    print(f"{count - len(result.differing)} of {count} {what} are the same{of_part}")
    for name, offline, served in result.differing[:_MOST_SHOWN]:
        print(f"  {name[:60]!r}: {offline or 'nothing'} offline, {served} served")
    if result.furthest is not None:
        print(f"probabilities and numbers differ by {result.furthest:.1e} at most")
    print(f"{count / result.seconds:.1f} {what} a second, {config.batch_size} a call")


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
