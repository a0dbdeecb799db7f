"""What every model here shares: its configuration and its inputs."""

from collections.abc import Mapping
from typing import Any, Self

import keras

from keras_bert_impl.config import BertConfig
from keras_bert_impl.cpu_kernels.switch import set_up_xla
from keras_bert_impl.models.frozen import freeze_layers, frozen_layers
from keras_bert_impl.models.inputs import ENCODER_INPUTS, complete_inputs


class ConfiguredModel(keras.Model):
    """A functional model that saves its configuration instead of its graph.

    It is called with a dict of its inputs; see `complete_inputs` for other names that are
    understood and for what may be left out.

    Args:
        inputs: symbolic inputs.
        outputs: symbolic outputs.
        config: the model's configuration; readable as `.config`.
        dtype: a Keras dtype policy or its name, e.g. "mixed_bfloat16"; the global one by default.
        trainable: False freezes the whole model.
        frozen: layers that are (not) frozen by their paths; see `frozen_layers`.
    """

    def __init__(
        self,
        *,
        inputs: Mapping[str, Any],
        outputs: Any,
        config: BertConfig,
        dtype: Any = None,
        trainable: bool = True,
        frozen: Mapping[str, bool] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)
        set_up_xla()  # before Keras compiles a step of this model
        self.config = config
        self.precision = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        self._names = tuple(inputs)
        self.trainable = trainable
        freeze_layers(self, frozen or {})

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Runs the model on a dict of inputs."""
        # Before Keras compares names and shapes: its messages know nothing of the defaults.
        return super().__call__(self._complete(inputs), *args, **kwargs)

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Runs the model on a dict of inputs; on JAX, `fit` comes here directly."""
        return super().call(self._complete(inputs), training=training, mask=mask)

    def _complete(self, inputs: Any) -> dict[str, Any]:
        return complete_inputs(inputs, self._names, self.config)

    def get_config(self) -> dict[str, Any]:
        """What `from_config` needs to make this model again."""
        return {
            "name": self.name,
            "trainable": self.trainable,
            "frozen": frozen_layers(self),
            "dtype": self.precision.name,
            "config": self.config.to_dict(),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        """Makes the model from what `get_config` gave."""
        del custom_objects  # every part of the model is registered with Keras
        return cls(**{**config, "config": BertConfig.from_dict(config["config"])})


def encoder_inputs() -> dict[str, keras.KerasTensor]:
    """Symbolic inputs, int32 [batch, length] each.

    `input_ids` holds the ids of the tokens, `input_mask` 1 for a token and 0 for padding,
    `segment_ids` 0 for the first segment and 1 for the second.

    Example:
        >>> sorted(encoder_inputs())
        ['input_ids', 'input_mask', 'segment_ids']
    """
    return {name: keras.Input(shape=(None,), dtype="int32", name=name) for name in ENCODER_INPUTS}
