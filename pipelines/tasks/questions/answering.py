"""Questions of somebody's own, asked of a passage of somebody's own."""

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.checkpoints.sources import is_saved_model
from keras_bert_impl.checkpoints.text_files import text_in_assets
from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.answerer import Answerer, ask
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.unknown_words import check_words
from pipelines.answering.config import AnsweringConfig
from pipelines.answering.opening import is_asked_in_graph, no_texts, open_answering_model
from pipelines.corpora.encodings import UTF_8, TextEncoding
from pipelines.tables.lines import read_text
from pipelines.tasks.questions.options import AnswerConfig
from pipelines.tasks.questions.settings import ANSWERS

Signature = Callable[[str, str], Mapping[str, Any]]


@dataclass(frozen=True)
class FoundAnswer:
    """An answer as it stands in the passage.

    Attributes:
        text: the passage's own characters.
        start: the position of its first character.
        end: the position after its last one.
        line: the line that it starts in, from 1.
        probability: by the softmax of the scores of the model's best answers (`n_best_size`).
    """

    text: str
    start: int
    end: int
    line: int
    probability: float


@dataclass(frozen=True)
class AnsweredQuestion:
    """A question with its best answers.

    Attributes:
        question: as it was asked.
        has_answer: whether the model finds that the passage answers it.
        answers: the best answers, the best one first.
    """

    question: str
    has_answer: bool
    answers: list[FoundAnswer]


def answer(config: AnswerConfig) -> list[AnsweredQuestion]:
    """Answers questions by a passage.

    Raises:
        UserError: the model or the passage is not what it should be.
    """
    passage = read_passage(config.passage_file, config.text_encoding)
    asked = [question for question in config.question if question.strip()]
    with _opened(config) as (signature, text):
        if text is not None:
            name = f"{config.passage_file} and the questions"
            check_words([passage, *asked], text, name, may_refuse=False)
        return [_answered(question, passage, signature, config.num_answers) for question in asked]


def read_passage(path: Path, encoding: TextEncoding = UTF_8) -> str:
    """Reads a text with its blanks and line breaks as they are; positions count its characters.

    Args:
        path: the file.
        encoding: how it stands in bytes; positions are those of the composed text.

    Raises:
        UserError: the file is missing, empty, blank or not in its encoding.
    """
    text = read_text(path, encoding)
    if not text.strip():
        raise UserError(f"{path}: holds nothing but blanks; name a file with text.")
    return text


def _answered(question: str, passage: str, ask: Signature, count: int) -> AnsweredQuestion:
    found = {name: np.asarray(value)[0] for name, value in ask(question, passage).items()}
    starts, ends, scores = (
        found[name][: found["answer_counts"]] for name in ("starts", "ends", "scores")
    )
    weights = np.exp(scores.astype(np.float64) - scores.max(initial=-math.inf))
    probabilities = (weights / weights.sum()).tolist()
    answers = [
        FoundAnswer(passage[start:end], start, end, passage.count("\n", 0, start) + 1, probability)
        for start, end, probability in zip(
            starts.tolist(), ends.tolist(), probabilities, strict=True
        )
    ]
    return AnsweredQuestion(question, bool(found["has_answer"]), answers[:count])


@contextlib.contextmanager
def _opened(config: AnswerConfig) -> Iterator[tuple[Signature, TextSettings | None]]:
    """The signature, and how the model cuts texts where that is known."""
    if is_asked_in_graph(config.model, config):
        yield _load(config)
        return
    # The same by rows that are made outside the graph, whatever computes them.
    with contextlib.closing(open_answering_model(AnsweringConfig.of(config), no_texts)) as model:
        answerer = model.answerers.get(ANSWERS)
        if answerer is None:
            raise _no_model_for_questions(config)
        yield functools.partial(_of_answerer, answerer), model.text


def _of_answerer(answerer: Answerer, question: str, passage: str) -> Mapping[str, Any]:
    (found,) = ask(answerer, [{"question": question, "passage": passage}])
    return {name: np.asarray(value)[None] for name, value in found.items()}


def _load(config: AnswerConfig) -> tuple[Signature, TextSettings | None]:
    saved = is_saved_model(config.model)
    if not saved:
        find_model(config.model, **config.description())  # what is wrong is told at once
    import tensorflow as tf

    if saved:
        from keras_bert_impl.serving.signatures import load_signature

        loaded = load_signature(
            config.model,
            ANSWERS,
            "a model for questions",
            trusted=config.trust_saved_model,
            answers=("starts", "ends", "scores", "answer_counts", "has_answer"),
        )
        return lambda question, passage: loaded(
            question=tf.constant([question]), passage=tf.constant([passage])
        ), text_in_assets(Path(config.model))
    from pipelines.tasks.register import open_and_serve

    opened, served = open_and_serve(config.model, **config.description())
    if ANSWERS not in served.names:
        raise _no_model_for_questions(config)
    return lambda question, passage: served.call(
        ANSWERS, {"question": [question], "passage": [passage]}
    ), opened.text


def _no_model_for_questions(config: AnswerConfig) -> UserError:
    return UserError(
        f"{config.model}: holds no model for questions; name the model/ folder of a run of "
        "run_squad."
    )
