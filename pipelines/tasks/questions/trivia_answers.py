"""Answers to TriviaQA's questions: of a question's documents, the surest answer counts."""

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert_impl.files import open_whole
from pipelines.metrics.question_answering import trivia_scores
from pipelines.tasks.questions.passages import Question
from pipelines.tasks.questions.predictions import Prediction
from pipelines.tasks.questions.trivia_files import TriviaQuestion

TRIVIA_PREDICTIONS = "triviaqa_predictions.json"


class TriviaAnswer(NamedTuple):
    """The answer to a question.

    Attributes:
        score: of the answer: the sum of its two logits.
        text: the answer.
    """

    score: float
    text: str


def best_of_documents(
    answered: Iterable[tuple[Question, Prediction]],
) -> dict[str, TriviaAnswer]:
    """The surest answer of each question over all its documents, the first of equals.

    Returns:
        By what the official figures count.
    """
    best = dict[str, TriviaAnswer]()
    for question, prediction in answered:
        if not isinstance(question, TriviaQuestion):
            raise TypeError("the questions are not TriviaQA's")
        guess = prediction.best(math.inf)
        before = best.get(question.key)
        score = guess.score if guess.end else -math.inf  # a document without any span
        if before is None or score > before.score:
            best[question.key] = TriviaAnswer(score, guess.text)
    return best


def trivia_figures(
    best: Mapping[str, TriviaAnswer], right: Mapping[str, Mapping[str, Any]]
) -> dict[str, float]:
    """The official figures, in percent.

    Args:
        best: the answer to each question that was asked.
        right: the `Answer` objects of all questions that count.
    """
    return trivia_scores({key: answer.text for key, answer in best.items()}, right)


def write_trivia_predictions(folder: Path, best: Mapping[str, TriviaAnswer]) -> Path:
    """Writes the file that TriviaQA's official script takes: an object of answers."""
    path = folder / TRIVIA_PREDICTIONS
    with open_whole(path) as file:
        json.dump({key: answer.text for key, answer in best.items()}, file, indent=4)
        file.write("\n")
    return path
