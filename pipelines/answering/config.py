"""The options of opening a model to ask it, and of asking it the texts of a file."""

import dataclasses

from keras_bert_impl.checkpoints.checkpoint_options import CheckpointOptions
from keras_bert_impl.engines.config import (
    ENGINES,
    FLOAT32,
    PRECISIONS,
    TENSORFLOW,
    check_engine,
)
from keras_bert_impl.errors import UserError
from keras_bert_impl.options import REQUIRED, check_options, option
from keras_bert_impl.serving.config import SavedModelTrust


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnsweringConfig(CheckpointOptions, SavedModelTrust):
    """Which model answers, and what computes it.

    Raises:
        UserError: a choice is unknown, or the engine has no such precision.
    """

    model: str = option(
        REQUIRED,
        "A model directory, a TF1 checkpoint, a run's folder or checkpoint, a name on the Hugging "
        "Face hub, an export for OpenVINO, or a SavedModel.",
    )
    engine: str | None = option(
        None,
        "What computes: tensorflow, or openvino, which is faster on CPUs and starts in a second "
        "from the second time on; by default openvino for an export for it, else tensorflow.",
        choices=ENGINES,
    )
    engine_precision: str = option(
        FLOAT32,
        "The number format to compute in; the scales of int8 (openvino only) are found once on "
        "the first texts, and kept next to the model.",
        choices=PRECISIONS,
    )
    deterministic: bool = option(
        False,
        "Compute every text alone, so that it gets the same numbers whatever else is asked; "
        "otherwise the last digits depend on the texts that are computed together.",
    )
    max_seq_length: int | None = option(
        None,
        "The most tokens of a row; by default as many as in training, or as the model directory "
        "says.",
        at_least=5,
    )
    top_k: int = option(10, "How many words are given for each [MASK].", at_least=1)

    def __post_init__(self) -> None:
        check_options(self)
        try:
            check_engine(self.engine or TENSORFLOW, FLOAT32)
            if self.engine is not None:
                check_engine(self.engine, self.engine_precision)
        except UserError as error:
            raise UserError(str(error).replace("`precision=", "`engine_precision=")) from error
