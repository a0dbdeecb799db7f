"""Layers that start anew in fine-tuning: fresh weights where a checkpoint has others.

The upper layers of a pre-trained encoder are the most specialized on its own task. On a few
thousand examples a model that starts them anew is more often a good one (Zhang et al. 2021,
"Revisiting Few-sample BERT Fine-tuning").
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from keras import ops

from keras_bert_impl.errors import UserError


@dataclass(frozen=True)
class FreshWeights:
    """The values that some weights of a new model have.

    Attributes:
        layers: the names of the layers that they are of.
        values: float32 arrays by the weights' paths.
    """

    layers: tuple[str, ...]
    values: dict[str, np.ndarray]

    @classmethod
    def of(cls, model: Any, *, layers: int = 0, pooler: bool = False) -> "FreshWeights":
        """Keeps them; called with a model that was built and not restored yet.

        Args:
            model: a model with a BERT encoder.
            layers: how many of the encoder's blocks, counted from the top.
            pooler: whether the pooler as well.

        Raises:
            UserError: the encoder has fewer blocks, or the model no pooler.

        Example:
            >>> from keras_bert_impl.config import named_config
            >>> from keras_bert_impl.models.encoder import BertEncoder
            >>> encoder = BertEncoder(named_config("tiny", 10))
            >>> FreshWeights.of(encoder, layers=1, pooler=True).layers
            ('layer_1', 'pooler')
        """
        names = tuple(_names(model.config.num_hidden_layers, layers, pooler))
        values = {
            # A copy: on a CPU the array may be a view of the weight, which is overwritten next.
            weight.path: np.array(ops.convert_to_numpy(weight.value))
            for weight in model.weights
            # By whole parts of the path: layer_1 is not layer_11.
            if set(names) & set(weight.path.split("/"))
        }
        if pooler and not any("pooler/" in path for path in values):
            raise UserError("`reinit_pooler=True`: this model has no pooler; leave it out.")
        return cls(names, values)

    def put_back(self, model: Any) -> None:
        """Gives the weights their fresh values again."""
        for weight in model.weights:
            if weight.path in self.values:
                weight.assign(self.values[weight.path])


def _names(blocks: int, layers: int, pooler: bool) -> Iterator[str]:
    if layers > blocks:
        raise UserError(
            f"`reinit_layers={layers}` is more than the {blocks} layers of the model; lower it."
        )
    yield from (f"layer_{number}" for number in range(blocks - layers, blocks))
    if pooler:
        yield "pooler"
