"""`fill_mask` and `answer`: names of `predict`, with flags and tables of their own."""

import contextlib
import itertools
import json
import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keras_bert_impl.checkpoints.checkpoint_options import CheckpointOptions
from keras_bert_impl.engines.config import EngineChoice
from keras_bert_impl.errors import SeveralUserError, UserError
from keras_bert_impl.files import text_lines
from keras_bert_impl.options import REQUIRED, nested, option
from keras_bert_impl.serving.answerer import Answer, Answerer, Instance, ask
from keras_bert_impl.tokenization.unknown_words import check_words
from keras_bert_impl.tokenization.vocabulary import MASK
from pipelines.answering.config import JSON, TABLE, AnsweringConfig
from pipelines.answering.opening import no_texts, open_answering_model
from pipelines.corpora.encodings import TextEncoding
from pipelines.tables.lines import read_text

_LOGGER = logging.getLogger(__name__)

_FORMAT = "A table to read, or one JSON object a line."
_MOST_SHOWN = 60


@dataclass(frozen=True, kw_only=True)
class FillMaskConfig(CheckpointOptions, EngineChoice):
    """Which texts to fill in, and with which model."""

    model: str = option(REQUIRED, "A model in any form, or an export for OpenVINO.")
    text: Sequence[str] = option(
        (),
        "A text with [MASK] in it, or several lines of them; repeat the flag for more.",
        repeated=True,
    )
    input_file: str | None = option(None, "A file with one text a line, UTF-8.")
    top_k: int = option(5, "How many tokens to show for each [MASK].", at_least=1)
    format: str = option(TABLE, _FORMAT, choices=(TABLE, JSON))


@dataclass(frozen=True, kw_only=True)
class AnswerConfig(CheckpointOptions, EngineChoice):
    """Which questions to answer by which passage, and with which model."""

    model: Path = option(
        REQUIRED, "A run for questions (its model/ or a checkpoint), or an export for OpenVINO."
    )
    question: Sequence[str] = option(
        (), "What is asked; repeat the flag for more questions.", repeated=True
    )
    passage_file: Path = option(REQUIRED, "The text in which answers are looked for.")
    text_encoding: TextEncoding = nested(TextEncoding)
    num_answers: int = option(3, "How many answers to show for a question.", at_least=1)
    format: str = option(TABLE, _FORMAT, choices=(TABLE, JSON))

    def __post_init__(self) -> None:
        super().__post_init__()
        if not any(question.strip() for question in self.question):
            raise UserError("there is no question; give `question`.")
        for question in self.question:
            try:
                question.encode("utf-8")
            except UnicodeEncodeError as error:
                raise UserError(
                    f"`question={question!a}` is no Unicode text; write it as UTF-8."
                ) from error


def fill_mask(config: FillMaskConfig) -> Iterator[str]:
    """The lines about each text: what may stand at its masks."""
    given = [(text, where) for text, where in _given_texts(config) if text.strip()]
    if not given:
        raise UserError("there is no text; give `text` or an `input_file` with text.")
    texts = [text for text, _ in given if MASK in text]
    if texts:
        asked = AnsweringConfig.of(config, top_k=config.top_k)
        words = [text.replace(MASK, " ") for text in texts]
        instances = [{"text": text} for text in texts]
        for text, answer in zip(
            texts, _answers(asked, "masked_words", instances, words, "the texts"), strict=True
        ):
            yield from _filled(config, text, answer)
    refused = [
        f"{where}: '{text if len(text) <= _MOST_SHOWN else f'{text[: _MOST_SHOWN - 3]}...'}' has "
        f"no {MASK}; write {MASK} for the word to find."
        for text, where in given
        if MASK not in text
    ]
    if refused:
        raise SeveralUserError(refused)


def answer(config: AnswerConfig) -> Iterator[str]:
    """The lines about each question: its best answers, with their places in the passage."""
    passage = read_text(config.passage_file, config.text_encoding)
    if not passage.strip():
        raise UserError(f"{config.passage_file}: holds nothing but blanks; name a file with text.")
    questions = [question for question in config.question if question.strip()]
    instances = [{"question": question, "passage": passage} for question in questions]
    name = f"{config.passage_file} and the questions"
    asked = AnsweringConfig.of(config)
    found = _answers(asked, "answer", instances, [passage, *questions], name)
    for question, one in zip(questions, found, strict=True):
        yield from _answered(config, question, passage, one)


def _answers(
    config: AnsweringConfig,
    kind: str,
    instances: Sequence[Instance],
    words: Sequence[str],
    name: str,
) -> list[Answer]:
    with contextlib.closing(open_answering_model(config, no_texts, kind)) as model:
        answerer = next(one for one in model.answerers.values() if _gives(one, kind))
        check_words(words, model.text, name, may_refuse=False)
        return ask(answerer, instances)


def _gives(answerer: Answerer, kind: str) -> bool:
    """Whether an answerer gives all that is shown; another signature gives the best answer only."""
    return answerer.kind == kind and (kind != "answer" or "starts" in answerer.outputs)


def _given_texts(config: FillMaskConfig) -> Iterator[tuple[str, str]]:
    """Each text with its place: a file and a line, or the number of a text of `text`."""
    for number, text in enumerate(config.text, start=1):
        where = "`text`" if len(config.text) == 1 else f"`text` {number}"
        lines = text.replace("\r\n", "\n").split("\n")
        for line_number, line in enumerate(lines, start=1):
            yield line, where + (f", line {line_number}" if len(lines) > 1 else "")
    if config.input_file:
        for number, line in enumerate(text_lines(config.input_file, stream=True), 1):
            yield line, f"{config.input_file}: line {number}"


def _filled(config: FillMaskConfig, text: str, answer: Answer) -> Iterator[str]:
    pairs = zip(answer["tokens"], answer["probabilities"], strict=True)
    masks = [list(zip(*pair, strict=True)) for pair in pairs]
    truncated = answer["num_truncated"]
    if truncated:
        _LOGGER.warning(
            "A text is longer than the model's positions; %d of its tokens were left out, and %d "
            "of its masks filled in.",
            *(truncated, len(masks)),
        )
    if config.format == JSON:
        words = [[{"token": t, "probability": float(p)} for t, p in mask] for mask in masks]
        record = {"text": text, "masks": words, "num_truncated": int(truncated)}
        yield json.dumps(record, ensure_ascii=False)
        return
    yield text
    for number, mask in enumerate(masks, start=1):
        yield from [f"  [MASK] {number}"] if len(masks) > 1 else []
        yield from (f"  {probability:7.2%}  {token}" for token, probability in mask)


def _answered(config: AnswerConfig, question: str, passage: str, found: Answer) -> Iterator[str]:
    count = int(found["answer_counts"])
    scores = np.asarray(found["scores"][:count], np.float64)
    weights = np.exp(scores - scores.max(initial=-math.inf))
    spans = zip(found["starts"], found["ends"], (weights / weights.sum()).tolist(), strict=False)
    answers = [
        {
            "text": passage[start:end],
            "start": int(start),
            "end": int(end),
            "line": passage.count("\n", 0, start) + 1,
            "probability": probability,
        }
        for start, end, probability in itertools.islice(spans, config.num_answers)
    ]
    has_answer = bool(found["has_answer"])
    if config.format == JSON:
        record = {"question": question, "has_answer": has_answer, "answers": answers}
        yield json.dumps(record, ensure_ascii=False)
        return
    yield question
    if not (has_answer and answers):
        yield "  no answer in the passage" + ("; the best guesses:" if answers else "")
    for one in answers:
        text = " ".join(str(one["text"]).split())
        place = f"(line {one['line']}, characters {one['start']}-{one['end']})"
        yield f"  {one['probability']:7.2%}  {text}  {place}"
