"""A layer that is described by the model's configuration."""

from typing import Any, Self

import keras

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers.dense import Dense


class ConfiguredLayer(keras.layers.Layer):
    """A layer made from a `BertConfig`; saves it with itself.

    Args:
        config: the model's configuration.
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config

    def dense(self, units: int, name: str, activation: str = "linear") -> Dense:
        """A dense sub-layer of this layer's precision."""
        return Dense(
            units,
            activation,
            self.config.initializer_range,
            name=name,
            dtype=self.dtype_policy,
        )

    def get_config(self) -> dict[str, Any]:
        """What `from_config` needs to make this layer again."""
        return {**super().get_config(), "config": self.config.to_dict()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Makes the layer from what `get_config` gave."""
        return cls(**{**config, "config": BertConfig.from_dict(config["config"])})
