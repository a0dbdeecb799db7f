"""The original's three files of answered questions: predictions, the n best, the null odds."""

import json
import math
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from keras_bert_impl.files import open_whole
from pipelines.tasks.questions.passages import Question
from pipelines.tasks.questions.predictions import Candidate, Prediction

PREDICTIONS, N_BEST, NULL_ODDS = "predictions.json", "nbest_predictions.json", "null_odds.json"


def write_predictions(
    folder: Path,
    answered: Iterable[tuple[Question, Prediction]],
    *,
    version_2_with_negative: bool,
    null_score_diff_threshold: float = 0.0,
) -> list[Path]:
    """Writes what the original writes, byte for byte, one question after the other.

    Args:
        folder: gets `predictions.json`, `nbest_predictions.json` and, where there may be no answer,
            `null_odds.json`.
        answered: the questions with their predictions.
        version_2_with_negative: whether there may be no answer.
        null_score_diff_threshold: questions with greater null odds have no answer.

    Returns:
        The files' paths.
    """
    names = [PREDICTIONS, N_BEST, *([NULL_ODDS] if version_2_with_negative else [])]
    paths = [folder / name for name in names]
    with ExitStack() as stack:
        files = [_JsonObject(stack.enter_context(open_whole(path))) for path in paths]
        for question, prediction in answered:
            answer = prediction.best(null_score_diff_threshold).text
            values = (answer, n_best(prediction.candidates), prediction.null_odds)
            for file, value in zip(files, values, strict=False):
                file.add(question.identifier, value)
        for file in files:
            file.end()
    return paths


def n_best(candidates: Sequence[Candidate]) -> list[dict[str, Any]]:
    """The candidates as the original's file has them, with the softmax of their scores.

    Example:
        >>> n_best([Candidate("rain", 1.0, 2.0)])
        [{'text': 'rain', 'probability': 1.0, 'start_logit': 1.0, 'end_logit': 2.0}]
    """
    highest = max(candidate.score for candidate in candidates)
    weights = [math.exp(candidate.score - highest) for candidate in candidates]
    total = 0.0
    for weight in weights:  # one after the other: `sum` is more exact in newer versions of Python
        total += weight
    return [
        {
            "text": candidate.text,
            "probability": weight / total,
            "start_logit": candidate.start_logit,
            "end_logit": candidate.end_logit,
        }
        for candidate, weight in zip(candidates, weights, strict=True)
    ]


class _JsonObject:
    """One JSON object written member by member, as `json.dumps(..., indent=4)` writes it."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._separator = "{\n"

    def add(self, name: str, value: Any) -> None:
        """Writes a member."""
        member = json.dumps({name: value}, indent=4)
        self._file.write(self._separator + member.removeprefix("{\n").removesuffix("\n}"))
        self._separator = ",\n"

    def end(self) -> None:
        """Ends the object."""
        self._file.write("{}\n" if self._separator == "{\n" else "\n}\n")
