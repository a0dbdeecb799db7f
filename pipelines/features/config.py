"""The options of the jobs that compute vectors of text."""

import dataclasses
from collections.abc import Sequence

from keras_bert_impl.checkpoints.described import DescribedCheckpoint
from keras_bert_impl.errors import UserError
from keras_bert_impl.options import REQUIRED, check_options, option

_MODEL = (
    "A model directory, a TF1 checkpoint (prefix or folder), or a name on the Hugging Face hub."
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FeaturesConfig(DescribedCheckpoint):
    """Which vectors of which text.

    Raises:
        UserError: a choice is unknown, or no layer is named.
    """

    input_file: str = option(
        REQUIRED,
        'UTF-8 text, one input a line; " ||| " separates two segments. Or CSV, TSV or JSON, known '
        "by the file's ending or by text_column.",
    )
    text_column: str | None = option(
        None,
        "The column of the inputs: its name, or its number from 1 where there is no header. By "
        "default guessed where it is plain.",
    )
    output_file: str = option(REQUIRED, "The file to write.")
    model: str = option(REQUIRED, _MODEL)
    layers: Sequence[int] = option(
        (-1, -2, -3, -4), "Numbers of layers, separated by commas; -1 is the last."
    )
    max_seq_length: int | None = option(
        128,
        "The most tokens of an input, [CLS] and [SEP] included; longer inputs are truncated.",
        at_least=3,
    )
    batch_size: int = option(32, "How many inputs are computed at once.", at_least=1)
    output_format: str = option(
        "json", "google's JSON lines, or NumPy arrays.", choices=("json", "npz")
    )
    pooling: str = option(
        "none",
        "A vector a token, the mean over an input's tokens, or the vector of [CLS].",
        choices=("none", "mean", "cls"),
    )
    layer_combination: str = option(
        "concat",
        "How the layers become one vector, in npz and where tokens are pooled.",
        choices=("concat", "sum"),
    )
    precision: str = option(
        "float32",
        "The number format to compute in; bfloat16 is about twice as fast where the processor "
        "supports it, and accurate to two digits.",
        choices=("float32", "bfloat16"),
    )

    def __post_init__(self) -> None:
        check_options(self)
        if not self.layers:
            raise UserError("`layers` names no layer; give at least one, such as -1.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SensesConfig(DescribedCheckpoint):
    """Which word of which text to compare with itself.

    Raises:
        UserError: a value out of range.
    """

    model: str = option(REQUIRED, _MODEL)
    text: str = option(
        "The clerk locked the bank at noon, and when the bank was closed he sat down on the bank "
        "of the river to fish.",
        "A text that uses the word at least twice.",
    )
    word: str = option("bank", "The word; one token of the vocabulary.")
    last_layers: int = option(4, "The vectors of this many last layers are added up.", at_least=1)
    picture: str | None = option(None, "A PNG file to draw the cosines in.")

    def __post_init__(self) -> None:
        check_options(self)
