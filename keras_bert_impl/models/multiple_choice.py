"""A model that chooses one of several continuations."""

from typing import Any

import keras
from keras import ops

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers.logits import Logits
from keras_bert_impl.models.base import ConfiguredModel
from keras_bert_impl.models.head_inputs import HeadInputs
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertMultipleChoice(ConfiguredModel):
    """Encodes every choice on its own and gives each one score (SWAG).

    Takes int32 `input_ids`, `input_mask` and `segment_ids`, [batch, choices, length] each; gives
    {"logits": float32 [batch, choices]}.

    Args:
        config: the model's configuration.
        num_choices: the number of choices.

    Example:
        >>> import numpy as np
        >>> config = BertConfig(vocab_size=10, hidden_size=8, num_attention_heads=2,
        ...                     num_hidden_layers=1, intermediate_size=16)
        >>> ids = np.array([[[2, 5, 3], [2, 6, 3]]], "int32")
        >>> outputs = BertMultipleChoice(config, num_choices=2)(
        ...     {"input_ids": ids, "input_mask": ids * 0 + 1, "segment_ids": ids * 0})
        >>> tuple(outputs["logits"].shape)
        (1, 2)
    """

    def __init__(self, config: BertConfig, num_choices: int, **kwargs: Any) -> None:
        dtype = kwargs.pop("dtype", None)
        choice = Logits(config, 1, name="choice", dtype=dtype)
        inputs = {
            name: keras.Input(shape=(num_choices, None), dtype="int32", name=name)
            for name in ENCODER_INPUTS
        }
        rows = {
            name: Regroup(dtype="int32", name=f"rows_{name}")(ids) for name, ids in inputs.items()
        }
        read = HeadInputs.of(config, rows, dtype)
        scores = choice(read.pooled())  # [batch * choices, 1]
        outputs = {"logits": Regroup(num_choices, dtype="float32", name="choices")(scores)}
        super().__init__(inputs=inputs, outputs=outputs, config=config, dtype=dtype, **kwargs)
        self.encoder, self.choice, self.num_choices = read.encoder, choice, num_choices

    def get_config(self) -> dict[str, Any]:
        """What `from_config` needs to make this model again."""
        return {**super().get_config(), "num_choices": self.num_choices}


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class Regroup(keras.layers.Layer):
    """Reshapes to rows of a given width, or of the present width.

    Args:
        width: the new last axis; None keeps it.

    Example:
        >>> import numpy as np
        >>> tuple(Regroup()(np.zeros([2, 3, 5])).shape), tuple(Regroup(2)(np.zeros([6, 1])).shape)
        ((6, 5), (3, 2))
    """

    def __init__(self, width: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.width = width
        self.built = True

    def call(self, inputs: Any) -> Any:
        """Reshapes to [rows, width]."""
        return ops.reshape(inputs, [-1, self.width or ops.shape(inputs)[-1]])

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The number of rows is known only when the batch is there."""
        return (None, self.width or input_shape[-1])

    def get_config(self) -> dict[str, Any]:
        """What `__init__` needs to make this layer again."""
        return {**super().get_config(), "width": self.width}
