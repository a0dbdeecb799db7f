"""The options of making vectors, of tokens and of texts, and of searching them."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from keras_bert_impl.checkpoints.model_source import AdaptedOptions
from keras_bert_impl.checkpoints.sentence_modules import COSINE, DOT
from keras_bert_impl.engines.config import EngineConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.head_settings import POOLINGS
from keras_bert_impl.options import REQUIRED, Options, nested, option
from keras_bert_impl.serving.answerer import REFUSE, TRUNCATE
from keras_bert_impl.serving.smaller_vectors import FLOAT32, INT8, TYPES
from keras_bert_impl.tokenization.unknown_words import UnknownWords
from keras_bert_impl.training.config import MOST_EXAMPLES
from pipelines.corpora.encodings import TextEncoding

_TEXTS = (
    "Text, one a line; or CSV, TSV or JSON (an object a line, or an array), plain or packed (.gz, "
    ".xz, .bz2), known by the file's ending or by text_column."
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextsConfig(Options):
    """Where the texts are."""

    input_file: str = option(REQUIRED, _TEXTS)
    text_column: str | None = option(
        None,
        "The column of the texts: its name, or its number from 1 where there is no header. By "
        "default guessed where it is plain.",
    )
    text_encoding: TextEncoding = nested(TextEncoding)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FeaturesConfig(TextsConfig, AdaptedOptions):
    """Which vectors of which text."""

    output_file: str = option(REQUIRED, "The file to write.")
    model: str = option(
        REQUIRED,
        "A model directory, a TF1 checkpoint (prefix or folder), a run's folder or checkpoint, or "
        "a name on the Hugging Face hub.",
    )
    layers: Sequence[int] = option((-1, -2, -3, -4), "Layers, separated by commas; -1 is the last.")
    max_seq_length: int | None = option(
        128, "The most tokens of an input, with [CLS] and [SEP]; its end is cut off.", at_least=3
    )
    batch_size: int = option(32, "Inputs computed at once.", at_least=1, at_most=MOST_EXAMPLES)
    output_format: str = option(
        "json", "google's JSON lines, or NumPy arrays.", choices=("json", "npz")
    )
    pooling: str = option(
        "none", "A vector a token, their mean, or that of [CLS].", choices=("none", "mean", "cls")
    )
    layer_combination: str = option(
        "concat", "How layers become one vector, in npz and pooled.", choices=("concat", "sum")
    )
    precision: str = option(
        "float32",
        "The number format to compute in; bfloat16 is about twice as fast where the processor "
        "supports it, and accurate to two digits.",
        choices=("float32", "bfloat16"),
    )
    unknown: UnknownWords = nested(UnknownWords)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.layers:
            raise UserError("`layers` names no layer; give at least one, such as -1.")


NPY, PARQUET = ".npy", ".parquet"
METRICS = (COSINE, DOT)
EXACT, HNSW = "exact", "hnsw"


@dataclasses.dataclass(frozen=True, kw_only=True)
class VectorModelConfig(EngineConfig):
    """Which model makes the vectors, and how."""

    model: str = option(
        REQUIRED,
        "A model directory (sentence-transformers' among them), a TF1 checkpoint, a run's folder "
        "or checkpoint, a name on the Hugging Face hub, an export for OpenVINO, or static vectors.",
    )
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
        at_least=1,  # as static vectors allow; the model refuses what is too short for it
    )
    do_lower_case: bool | None = option(None, "Lower-case text, if no file says whether.")
    adapter: str | None = option(None, "The folder of an adapter (LoRA, in PEFT's form).")
    prompt_name: str | None = option(
        None, "The model's prompt before every text: query, document, …; else its default one."
    )
    prompt: str | None = option(None, "What is written in front of every text.")
    dimensions: int | None = option(
        None,
        "How many numbers of each vector are given, the first ones; good where the model was "
        "trained for it. By default all.",
        at_least=1,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prompt is not None and self.prompt_name is not None:
            raise UserError("`prompt` and `prompt_name` exclude each other; give one of them.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbedConfig(VectorModelConfig, TextsConfig):
    """Which texts become vectors, by which model, and where to."""

    input_file: str = option("", _TEXTS)
    text: Sequence[str] = option(
        (), "A text whose vector is printed as JSON; repeat the flag for more.", repeated=True
    )
    output_file: Path | None = option(
        None,
        "The file to write: NAME.npy, [texts, width], with NAME.npy.json, which says what it was "
        "made from, or NAME.parquet with the columns text and embedding.",
    )
    vector_type: str = option(
        FLOAT32,
        "What a number is: float32; int8, a byte within the range of all vectors; or ubinary, a "
        "bit, of which a byte holds eight.",
        choices=tuple(TYPES),
    )
    long_text: str = option(
        TRUNCATE,
        "Whether the end of a text that is too long is not read, or it is refused.",
        choices=(TRUNCATE, REFUSE),
    )
    unknown: UnknownWords = nested(UnknownWords)

    def __post_init__(self) -> None:
        super().__post_init__()
        is_file = bool(self.input_file)
        if is_file == bool(self.text) or is_file != bool(self.output_file):
            raise UserError("give `input_file` and `output_file`, or `text`, to have it printed.")
        if self.text and self.vector_type == INT8:
            raise UserError("`vector_type=int8` needs the ranges of many vectors; leave it out.")
        if self.output_file and self.output_file.suffix not in (NPY, PARQUET):
            raise UserError(f"`output_file={self.output_file}` must end in {NPY} or {PARQUET}.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class QueriesConfig(VectorModelConfig, TextsConfig):
    """Which texts are searched for."""

    query: tuple[str, ...] = option((), "A text to search for; repeat it for more.", repeated=True)
    query_file: str | None = option(None, "Texts to search for, in the forms of input_file.")
    query_column: str | None = option(None, "The column of query_file, as text_column is named.")
    top_k: int = option(5, "How many texts are given.", at_least=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SimilarConfig(QueriesConfig):
    """Which texts are searched for, among which."""

    vectors_file: Path = option(
        REQUIRED, f"The vectors of the texts of input_file, as `embed` wrote them ({NPY})."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.query and not self.query_file:
            raise UserError("nothing is searched for; give `query` or `query_file`.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchConfig(QueriesConfig):
    """Which texts are searched for in a kept index, and which are added to it."""

    index: Path = option(REQUIRED, "The folder of the index, which is made if it is not there.")
    input_file: str = option("", f"What is added, where it is not there yet. {_TEXTS}")
    method: str | None = option(
        None,
        "How it is searched: exact, or hnsw, by a graph that finds nearly all of the nearest in "
        "less than a millisecond; by default by a graph from 100,000 texts on.",
        choices=(EXACT, HNSW),
    )
    recall: float | None = option(
        None,
        "Share of the ten nearest that the graph should find, which is built or measured again "
        "for it: less is faster; by default 0.99, or what the index keeps.",
        more_than=0,
        at_most=1,
    )
    metric: str | None = option(
        None,
        "What makes vectors alike: cosine, or dot, their product; by default what the model's "
        "files say, else cosine. An existing index keeps its own.",
        choices=METRICS,
    )
    format: str = option(
        "text", "What is printed: text, or a JSON object a query.", choices=("text", "json")
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.query or self.query_file or self.input_file):
            raise UserError("nothing to do; give `input_file`, `query` or `query_file`.")
        if self.recall is not None and self.method == EXACT:
            raise UserError("`recall` is that of a graph; leave it out, or `method=exact`.")
