"""`fill_mask` and `answer`: names of `predict`, with flags of their own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.checkpoints.model_source import CheckpointOptions
from keras_bert_impl.engines.config import EngineConfig
from keras_bert_impl.options import REQUIRED, nested, option
from pipelines.answering.config import JSON, TABLE, PredictConfig
from pipelines.answering.predict import predict
from pipelines.corpora.encodings import TextEncoding

_FORMAT = "A table to read, or one JSON object a line."


@dataclass(frozen=True, kw_only=True)
class FillMaskConfig(CheckpointOptions, EngineConfig):
    """Which texts to fill in, and with which model."""

    model: str = option(REQUIRED, "A model in any form, or an export for OpenVINO.")
    text: Sequence[str] = option(
        (), "A text with [MASK] in it; repeat the flag for more.", repeated=True
    )
    input_file: str | None = option(None, "A file with one text a line, UTF-8.")
    top_k: int = option(5, "How many tokens to show for each [MASK].", at_least=1)
    format: str = option(TABLE, _FORMAT, choices=(TABLE, JSON))


@dataclass(frozen=True, kw_only=True)
class AnswerConfig(CheckpointOptions, EngineConfig):
    """Which questions to answer by which passage, and with which model."""

    model: Path = option(
        REQUIRED, "A run for questions (its model/ or a checkpoint), or an export for OpenVINO."
    )
    question: Sequence[str] = option(
        REQUIRED, "What is asked; repeat the flag for more questions.", repeated=True
    )
    passage_file: Path = option(REQUIRED, "The text in which answers are looked for.")
    text_encoding: TextEncoding = nested(TextEncoding)
    num_answers: int = option(3, "How many answers to show for a question.", at_least=1)
    format: str = option(TABLE, _FORMAT, choices=(TABLE, JSON))


def fill_mask(config: FillMaskConfig) -> None:
    """Prints each text, and what may stand at its masks."""
    asked = PredictConfig.of(
        config,
        text=config.text,
        input_file=config.input_file,
        top_k=config.top_k,
        format=config.format,
    )
    predict(asked, "masked_words", config.top_k)


def answer(config: AnswerConfig) -> None:
    """Prints each question, and its best answers with their places in the passage."""
    asked = PredictConfig.of(
        config,
        question=config.question,
        passage_file=str(config.passage_file),
        text_encoding=config.text_encoding,
        format=config.format,
    )
    predict(asked, "answer", config.num_answers)
