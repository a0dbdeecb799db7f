"""The loss of models that give some tokens a tag."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from keras import ops

from keras_bert_impl.training.batches import EXAMPLE_WEIGHTS, Batch
from keras_bert_impl.training.objectives import Figures, Objective, weights_of


class TagObjective(Objective):
    """Mean cross entropy over the tokens that have a tag, whatever rows they stand in.

    Tags are `tag_ids` int32 [batch, length]: 0 where there is none (a word's further tokens,
    padding), else the number of the tag plus 1.

    Example:
        >>> objective = TagObjective()
        >>> batch = {"tag_ids": np.array([[0, 2, 0]])}
        >>> outputs = {"logits": ops.convert_to_tensor([[[9.0, 0.0], [0.0, 9.0], [9.0, 0.0]]])}
        >>> loss, metrics = objective.loss(outputs, batch, objective.normalizers(batch))
        >>> round(float(loss), 4), float(metrics["accuracy"])
        (0.0001, 1.0)
    """

    def normalizers(self, batch: Batch) -> dict[str, np.float32]:
        """Counts the tokens with a tag; see `Objective.normalizers`."""
        tagged = (batch["tag_ids"] > 0).astype(np.float32)
        if EXAMPLE_WEIGHTS in batch:
            tagged = tagged * batch[EXAMPLE_WEIGHTS][:, None]
        return {"tags": np.float32(np.sum(tagged))}

    def loss(
        self, outputs: Any, batch: Mapping[str, Any], normalizers: Mapping[str, Any]
    ) -> Figures:
        """Gives the part's share of the loss, and of the tags that are right."""
        logits = ops.cast(outputs["logits"], "float32")  # [rows, length, tags]
        tags = ops.cast(batch["tag_ids"], "int32")  # [rows, length]
        labels = ops.maximum(tags - 1, 0)
        losses = ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        right = ops.equal(ops.cast(ops.argmax(logits, axis=-1), "int32"), labels)
        # A batch may be without any tag: rows in which other windows own all words.
        count = ops.maximum(ops.cast(normalizers["tags"], "float32"), 1.0)
        share = weights_of(batch, tags) / count
        weights = ops.cast(tags > 0, "float32") * share[:, None]
        accuracy = ops.sum(ops.cast(right, "float32") * weights)
        return ops.sum(losses * weights), {"accuracy": accuracy}
