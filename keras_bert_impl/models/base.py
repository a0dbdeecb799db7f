"""What every model here shares: its configuration and its inputs."""

from typing import Any, Self

import keras

from keras_bert_impl.config import BertConfig


class ConfiguredModel(keras.Model):
    """A functional model that saves its configuration instead of its graph.

    Args:
        inputs: symbolic inputs.
        outputs: symbolic outputs.
        config: the model's configuration; readable as `.config`.
        dtype: a Keras dtype policy or its name, e.g. "mixed_bfloat16"; the global one by default.
    """

    def __init__(
        self, *, inputs: Any, outputs: Any, config: BertConfig, dtype: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)
        self.config = config
        self.precision = keras.dtype_policies.get(dtype or keras.config.dtype_policy())

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Runs the model on a dict of inputs; features that it does not know are left aside.

        So a whole batch, labels included, can be given as it is.
        """
        known = {name: inputs[name] for name in self._inputs_struct}
        return super().call(known, training=training, mask=mask)

    def get_config(self) -> dict[str, Any]:
        """What `from_config` needs to make this model again."""
        return {
            "name": self.name,
            "trainable": self.trainable,
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

    `input_ids` holds pieces, `input_mask` 1 for a piece and 0 for padding, `segment_ids` 0 for the
    first segment and 1 for the second.

    Example:
        >>> sorted(encoder_inputs())
        ['input_ids', 'input_mask', 'segment_ids']
    """
    names = ("input_ids", "input_mask", "segment_ids")
    return {name: keras.Input(shape=(None,), dtype="int32", name=name) for name in names}
