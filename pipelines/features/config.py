"""What `extract_features` computes and writes."""

import dataclasses
from collections.abc import Sequence

from keras_bert_impl.errors import UserError

POOLINGS = ("none", "mean", "cls")
COMBINATIONS = ("concat", "sum")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FeaturesConfig:
    """Which vectors of which text.

    Attributes:
        input_file: UTF-8 text, one input a line; " ||| " separates two segments.
        output_file: where to.
        init_checkpoint: a model directory or the prefix of a TF1 checkpoint.
        layers: numbers of blocks from 0, or from the end as -1, -2, …
        max_seq_length: the most tokens of an input, [CLS] and [SEP] included; None is the model's
            positions.
        batch_size: how many inputs are computed at once.
        output_format: "json" (google's form) or "npz".
        pooling: "none" (a vector a token), "mean" over an input's tokens, or "cls".
        combination: how the layers become one vector in "npz": "concat" or "sum".
        precision: what to compute in, "float32" or "bfloat16".
        bert_config_file: the configuration where the checkpoint has none beside it.
        vocab_file: the vocabulary where the checkpoint has none beside it.
        do_lower_case: the casing where the checkpoint does not say it; None is lower case, as in
            the original.

    Raises:
        UserError: a choice is unknown, or no layer is named.
    """

    input_file: str
    output_file: str
    init_checkpoint: str
    layers: Sequence[int] = (-1, -2, -3, -4)
    max_seq_length: int | None = 128
    batch_size: int = 32
    output_format: str = "json"
    pooling: str = "none"
    combination: str = "concat"
    precision: str = "float32"
    bert_config_file: str | None = None
    vocab_file: str | None = None
    do_lower_case: bool | None = None

    def __post_init__(self) -> None:
        if not self.layers:
            raise UserError("`layers` names no layer; give at least one, such as -1.")
        for name, value, allowed in (
            ("pooling", self.pooling, POOLINGS),
            ("layer_combination", self.combination, COMBINATIONS),
            ("output_format", self.output_format, ("json", "npz")),
        ):
            if value not in allowed:
                raise UserError(f"`{name}={value}` is unknown; choose {', '.join(allowed)}.")
