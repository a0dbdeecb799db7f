"""The options of making vectors and of searching them."""

import dataclasses
from pathlib import Path

from keras_bert_impl.engines.config import EngineConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.pooling import POOLINGS
from keras_bert_impl.options import REQUIRED, check_options, option

_MODEL = (
    "A model directory (sentence-transformers' among them), a TF1 checkpoint, or a name on the "
    "Hugging Face hub."
)
NPY, PARQUET = ".npy", ".parquet"


@dataclasses.dataclass(frozen=True, kw_only=True)
class VectorModelConfig(EngineConfig):
    """Which model makes the vectors, and how.

    Raises:
        UserError: a choice is unknown, or the engine has no such precision.
    """

    model: str = option(REQUIRED, _MODEL)
    pooling: str | None = option(
        None,
        "The vector of a text: mean of its tokens', cls, the first token's, or pooler, BERT's "
        "own; by default what the model directory says, else mean.",
        choices=POOLINGS,
    )
    normalize: bool | None = option(
        None, "Whether vectors have length 1; by default what the model directory says, else not."
    )
    max_seq_length: int | None = option(
        None,
        "The most tokens of a text; longer ones are truncated. By default what the model directory "
        "says, else the model's positions.",
        at_least=3,
    )
    do_lower_case: bool | None = option(
        None, "Whether text is lower-cased, where the checkpoint does not say it."
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextsConfig:
    """Where the texts are.

    Raises:
        UserError: a value out of range.
    """

    input_file: str = option(
        REQUIRED,
        "UTF-8 text, one text a line; or CSV, TSV or JSON (an object a line, or an array), plain "
        "or packed (.gz, .xz, .bz2), known by the file's ending or by text_column.",
    )
    text_column: str | None = option(
        None,
        "The column of the texts: its name, or its number from 1 where there is no header. By "
        "default guessed where it is plain.",
    )

    def __post_init__(self) -> None:
        check_options(self)


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbedConfig(VectorModelConfig, TextsConfig):
    """Which texts become vectors, by which model, and where to.

    Raises:
        UserError: a choice is unknown, or the output's name says no form.
    """

    output_file: Path = option(
        REQUIRED,
        "The file to write: NAME.npy, float32 [texts, width], or NAME.parquet with the columns "
        "text and embedding.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.output_file.suffix not in (NPY, PARQUET):
            raise UserError(
                f"`output_file={self.output_file}`: its ending says no form; let it end in {NPY} "
                f"or {PARQUET}."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class SimilarConfig(VectorModelConfig, TextsConfig):
    """Which texts are searched for, among which.

    Raises:
        UserError: a value out of range, or nothing is searched for.
    """

    vectors_file: Path = option(
        REQUIRED, f"The vectors of the texts of input_file, as `embed` wrote them ({NPY})."
    )
    query: tuple[str, ...] = option(
        (), "A text to search for; may be given several times.", repeated=True
    )
    query_file: str | None = option(
        None, "Texts to search for: one a line, or a column, as in input_file."
    )
    top_k: int = option(5, "How many texts are given.", at_least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.query and not self.query_file:
            raise UserError("nothing is searched for; give `query` or `query_file`.")
