"""The options of opening a model to ask it, and of asking it the texts of a file."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Self

from keras_bert_impl.checkpoints.model_source import CheckpointOptions
from keras_bert_impl.engines.config import EngineConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.options import REQUIRED, nested, option
from pipelines.corpora.encodings import TextEncoding


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnsweringConfig(CheckpointOptions, EngineConfig):
    """Which model answers, and what computes it."""

    model: str = option(
        REQUIRED,
        "A model directory, a TF1 checkpoint, a run's folder or checkpoint, a name on the Hugging "
        "Face hub, or an export for OpenVINO.",
    )
    max_seq_length: int | None = option(
        None,
        "The most tokens of a row; by default as many as in training, or as the model directory "
        "says.",
        at_least=5,
    )
    top_k: int = option(10, "How many words are given for each [MASK].", at_least=1)
    vectors: bool = option(
        False, "Give the vector of each text, as `embed` does, whatever the model was trained for."
    )

    @classmethod
    def of(cls, job: Any, **more: Any) -> Self:
        """The options of a job that asks a model in one way."""
        return cls(
            model=str(job.model),
            engine=job.engine,
            precision=job.precision,
            deterministic=job.deterministic,
            **job.description(),
            **more,
        )


TABLE, JSON = "table", "json"


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
        "Text, one text a line (/dev/stdin as well); or CSV, TSV or JSON, plain or packed, "
        "known by the file's ending or by text_column.",
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
    format: str = option(
        TABLE, "A table to read, or one JSON object a line.", choices=(TABLE, JSON)
    )
    signature: str | None = option(
        None,
        "Which question the model is asked, where it answers several: text, text_pair, raw_text, "
        "answers, ....",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        given = [
            name
            for name, value in (
                ("text", self.text),
                ("question", self.question),
                ("context", self.context),
                ("input_file", self.input_file),
            )
            if value
        ]
        if not given:
            raise UserError("nothing is asked; give `text` or `input_file`.")
        if len(given) > 1:
            raise UserError(f"`{given[0]}` and `{given[1]}` exclude each other; give one of them.")
        if self.text_pair and len(self.text_pair) != len(self.text):
            raise UserError(
                f"there are {len(self.text)} of `text`, but {len(self.text_pair)} of `text_pair`; "
                "give as many."
            )
        if bool(self.question) != bool(self.passage_file):
            raise UserError("`question` and `passage_file` belong together; give both.")
        if bool(self.context) != bool(self.ending):
            raise UserError("`context` and `ending` belong together; give both.")
        for name in ("text_column", "text_pair_column"):
            if getattr(self, name) and not self.input_file:
                raise UserError(f"`{name}` is a column of `input_file`; give both.")
