"""Compares the answers of a SavedModel with those that run_squad wrote, and times them.

run_squad --do_eval writes answers.tsv, with the position of every answer. The same questions are
asked of the SavedModel that was exported from that run's model/. An answer is the same where it
starts and ends at the same characters. Between two answers that are equally good to the last digit
the length of a batch may decide; the odds of what differs are shown.

Questions about passages of like lengths are asked together. --part=2/8 asks the second eighth of
the questions only, every eighth one, so that a whole dev set may be asked in several short calls.

Example:
  python -m tools.benchmarks.served_questions --saved_model=served --trust_saved_model
      --data_file=dev-v1.1.json --answers_file=squad/answers.tsv
"""

import csv
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import REQUIRED, check_options, option
from keras_bert_impl.serving.config import SavedModelTrust
from tools import command_line
from tools.config_flags import ConfigFlags

if TYPE_CHECKING:
    from pipelines.tasks.questions.passages import Question

_MOST_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class ServedQuestionsConfig(SavedModelTrust):
    """What is compared."""

    saved_model: Path = option(REQUIRED, "The SavedModel.")
    data_file: Path = option(REQUIRED, "The questions, in SQuAD's form.")
    answers_file: Path = option(REQUIRED, "answers.tsv of run_squad.")
    version_2_with_negative: bool = option(False, "Questions may have no answer.")
    batch_size: int = option(16, "Questions of a call.", at_least=1)
    part: str = option("1/1", "Which part of the questions, of how many.")

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


FLAGS = ConfigFlags(__doc__, ServedQuestionsConfig)


def read_positions(path: Path) -> dict[str, tuple[int, int]]:
    """Where each answer starts and ends, by the question's id.

    Raises:
        UserError: the file is missing, or no table of answers.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file, delimiter="\t")
            return {row["id"]: (int(row["start"]), int(row["end"])) for row in rows}
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path}: is no answers.tsv of run_squad ({error!r}).") from error


def served_positions(
    signature: Any, questions: Sequence["Question"], batch_size: int
) -> Iterator[tuple[int, int, float]]:
    """Where each served answer starts and ends, and the odds of no answer."""
    import numpy as np
    import tensorflow as tf

    rest = iter(questions)
    while some := list(islice(rest, batch_size)):
        found = signature(
            question=tf.constant([one.text for one in some]),
            passage=tf.constant([one.passage.text for one in some]),
        )
        arrays = {name: np.asarray(value) for name, value in found.items()}
        odds = arrays["no_answer_score"] - arrays["score"]
        yield from zip(arrays["start"].tolist(), arrays["end"].tolist(), odds.tolist(), strict=True)


def _run() -> None:
    config = FLAGS.config()
    from keras_bert_impl.serving.signatures import load_signature
    from pipelines.tasks.questions.files import read_questions

    negative = config.version_2_with_negative
    every = read_questions(config.data_file, version_2_with_negative=negative)
    number, parts = config.which_part
    questions = sorted(islice(every, number - 1, None, parts), key=lambda x: len(x.passage.text))
    offline = read_positions(config.answers_file)
    signature = load_signature(
        config.saved_model,
        "serving_default",
        "a model for questions",
        trusted=config.trust_saved_model,
    )
    list(served_positions(signature, questions[: config.batch_size], config.batch_size))  # warm
    start = time.perf_counter()
    served = list(served_positions(signature, questions, config.batch_size))
    seconds = time.perf_counter() - start
    differing = [
        (question.identifier, offline.get(question.identifier), *found)
        for question, found in zip(questions, served, strict=True)
        if found[:2] != offline.get(question.identifier)
    ]
    of_part = "" if parts == 1 else f" (part {config.part})"
    print(f"{len(questions) - len(differing)} of {len(questions)} answers are the same{of_part}")
    for identifier, wanted, first, last, odds in differing[:_MOST_SHOWN]:
        print(f"  {identifier}: {wanted} offline, ({first}, {last}) served, odds {odds:.6f}")
    print(f"{len(questions) / seconds:.1f} answers a second, {config.batch_size} questions a call")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
