"""A model that chooses one of several continuations."""

from typing import Any

import keras
from keras import ops

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers.base import SavedLayer
from keras_bert_impl.layers.heads import Logits
from keras_bert_impl.models.base import ConfiguredModel
from keras_bert_impl.models.encoder import HeadInputs
from keras_bert_impl.models.head_settings import pools_by_pooler
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
        >>> from keras_bert_impl.config import named_config
        >>> model = BertMultipleChoice(named_config("tiny", 10), num_choices=2)
        >>> tuple(model({"input_ids": np.array([[[2, 5, 3], [2, 6, 3]]])})["logits"].shape)
        (1, 2)
    """

    saves = ("num_choices",)

    def __init__(
        self, config: BertConfig, num_choices: int, dtype: Any = None, **kwargs: Any
    ) -> None:
        choice = Logits(config, 1, name="choice", dtype=dtype)
        inputs, rows = dict[str, Any](), dict[str, Any]()
        for name in ENCODER_INPUTS:
            inputs[name] = keras.Input(shape=(num_choices, None), dtype="int32", name=name)
            # The encoder takes [batch, length]: every choice becomes an input of its own.
            rows[name] = Regroup(dtype="int32", name=f"rows_{name}")(inputs[name])
        read = HeadInputs.of(config, rows, dtype)
        scores = choice(read.pooled())  # [batch * choices, 1]
        outputs = {"logits": Regroup(num_choices, dtype="float32", name="choices")(scores)}
        super().__init__(inputs=inputs, outputs=outputs, config=config, dtype=dtype, **kwargs)
        self.encoder, self.choice, self.num_choices = read.encoder, choice, num_choices
        self.reads_pooler = pools_by_pooler(config)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class Regroup(SavedLayer):
    """Reshapes to [any, width], with a given width or the present one.

    Example:
        >>> import numpy as np
        >>> tuple(Regroup()(np.zeros([2, 3, 5])).shape), tuple(Regroup(2)(np.zeros([6, 1])).shape)
        ((6, 5), (3, 2))
    """

    saves = ("width",)

    def __init__(self, width: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.width = width
        self.built = True

    def call(self, inputs: Any) -> Any:
        """Maps [..., in] to [any, width]."""
        return ops.reshape(inputs, [-1, self.width or ops.shape(inputs)[-1]])

    def compute_output_shape(self, input_shape: Any) -> Any:
        return (None, self.width or input_shape[-1])
