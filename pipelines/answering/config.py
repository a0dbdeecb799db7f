"""The options of opening a model to ask it, and of asking it the texts of a file."""

import dataclasses
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, Self

from keras_bert_impl.checkpoints.model_source import AdaptedOptions
from keras_bert_impl.engines.config import EngineConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.options import REQUIRED, nested, option
from keras_bert_impl.serving.answerer import REFUSE, TRUNCATE, WINDOWS
from pipelines.corpora.encodings import TextEncoding


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnsweringConfig(AdaptedOptions, EngineConfig):
    """Which model answers, and what computes it."""

    model: str = option(
        REQUIRED,
        "A model directory, a TF1 checkpoint, a run's folder or checkpoint, a name on the Hugging "
        "Face hub, an export for OpenVINO, or static vectors.",
    )
    max_seq_length: int | None = option(
        None,
        "The most tokens of a row; by default as many as in training, or as the model directory "
        "says.",
        at_least=1,
    )
    long_text: str = option(
        TRUNCATE,
        "What becomes of a text that is longer than the model reads: its end is not read, which is "
        "said with the answer; or it is refused; or it is read in windows, by tasks that have them "
        "(questions and entities always do).",
        choices=(TRUNCATE, REFUSE, WINDOWS),
    )
    top_k: int = option(10, "How many words are given for each [MASK].", at_least=1)
    vectors: bool = option(
        False, "Give the vector of each text, as `embed` does, whatever the model was trained for."
    )
    truncate_anyway: bool = option(
        False,
        "Of a server: give the first `dimensions` numbers of a vector that a client asks for also "
        "where no training was for it.",
    )

    @classmethod
    def of(cls, job: Any, **more: Any) -> Self:
        """The options that a job which asks a model in one way has in common with these."""
        shared = {one.name for one in dataclasses.fields(cls)} & vars(job).keys()
        return cls(**{name: vars(job)[name] for name in shared}, **more)


TABLE, JSON, CSV, TSV = "table", "json", "csv", "tsv"
_FORMAT = "A table to read, or one JSON object a line."
_BY_ENDING = {".json": JSON, ".jsonl": JSON, ".csv": CSV, ".tsv": TSV}


@dataclasses.dataclass(frozen=True, kw_only=True)
class PredictConfig(AnsweringConfig):
    """Which texts are answered, by which model, and where the answers go."""

    text: Sequence[str] = option(
        (), "A text; repeat the flag for more. Of a pair the first one.", repeated=True
    )
    text_pair: Sequence[str] = option(
        (), "The second text of a pair; as many as `text`.", repeated=True
    )
    question: Sequence[str] = option(
        (), "A question about the passage, for a model of questions.", repeated=True
    )
    passage_file: str | None = option(None, "A file with the passage.")
    context: str | None = option(None, "What is continued, for a model of choices.")
    ending: Sequence[str] = option((), "What may follow the context; one for each.", repeated=True)
    input_file: str | None = option(
        None,
        "Text, one text a line; or CSV, TSV or JSON, known by the file's ending or by text_column; "
        "plain or packed. Or a pipe (/dev/stdin) of lines, which is not unpacked.",
    )
    text_column: str | None = option(
        None,
        "The column of the texts, of pairs of the first ones: its name, or its number from 1 where "
        "there is no header. By default the columns that are called as the model's inputs, or "
        "guessed where it is plain.",
    )
    text_pair_column: str | None = option(None, "The column of the second texts.")
    text_encoding: TextEncoding = nested(TextEncoding)
    output_file: str | None = option(
        None, "The file to write; it appears when it is complete. By default standard output."
    )
    format: str | None = option(
        None,
        f"{_FORMAT[:-1]}, or the input's columns and the answer's. By default as output_file ends "
        "(.json, .jsonl, .csv, .tsv), else a table to read.",
        choices=(TABLE, JSON, CSV, TSV),
    )
    signature: str | None = option(
        None,
        "Which question the model is asked, where it answers several: text, text_pair, raw_text, "
        "answers, ....",
    )

    @property
    def written_as(self) -> str:
        """The form of the answers, with the default settled."""
        return self.format or _BY_ENDING.get(PurePath(self.output_file or "").suffix, TABLE)

    def __post_init__(self) -> None:
        super().__post_init__()
        ways = ("text", "question", "context", "input_file")
        given = [name for name in ways if getattr(self, name)]
        if not given:
            raise UserError("nothing is asked; give `text` or `input_file`.")
        if len(given) > 1:
            raise UserError(f"`{given[0]}` and `{given[1]}` exclude each other; give one of them.")
        if self.text_pair and len(self.text_pair) != len(self.text):
            raise UserError(
                f"there are {len(self.text)} of `text`, but {len(self.text_pair)} of `text_pair`; "
                "give as many."
            )
        for one, other in (("question", "passage_file"), ("context", "ending")):
            if bool(getattr(self, one)) != bool(getattr(self, other)):
                raise UserError(f"`{one}` and `{other}` belong together; give both.")
        for name in ("text_column", "text_pair_column"):
            if getattr(self, name) and not self.input_file:
                raise UserError(f"`{name}` is a column of `input_file`; give both.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FillMaskConfig(AdaptedOptions, EngineConfig):
    """Which texts to fill in, and with which model."""

    model: str = option(REQUIRED, "A model in any form, or an export for OpenVINO.")
    text: Sequence[str] = option(
        (), "A text with [MASK] in it; repeat the flag for more.", repeated=True
    )
    input_file: str | None = option(None, "A file with one text a line, UTF-8.")
    top_k: int = option(5, "How many tokens to show for each [MASK].", at_least=1)
    format: str = option(TABLE, _FORMAT, choices=(TABLE, JSON))


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnswerConfig(AdaptedOptions, EngineConfig):
    """Which questions to answer by which passage, and with which model."""

    model: str = option(
        REQUIRED, "A run for questions (its model/ or a checkpoint), or an export for OpenVINO."
    )
    question: Sequence[str] = option(
        REQUIRED, "What is asked; repeat the flag for more questions.", repeated=True
    )
    passage_file: str = option(REQUIRED, "The text in which answers are looked for.")
    text_encoding: TextEncoding = nested(TextEncoding)
    num_answers: int = option(3, "How many answers to show for a question.", at_least=1)
    format: str = option(TABLE, _FORMAT, choices=(TABLE, JSON))
