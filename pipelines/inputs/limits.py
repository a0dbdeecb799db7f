"""Checks a batch against a model: every id must be in its table.

On a GPU TensorFlow looks up zeros for an id outside a table and says nothing, so a run with the
wrong vocabulary would train for days.
"""

from collections.abc import Callable, Mapping

import numpy as np

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError


def check_batch(
    batch: Mapping[str, np.ndarray], config: BertConfig, where: Callable[[int], str]
) -> None:
    """Refuses ids that the model has no embedding for, and weights that are NaN or negative.

    It costs two passes over a batch's integers: cheap enough for every batch of a run.

    Example:
        >>> batch = {"input_ids": np.array([[2, 99]])}
        >>> check_batch(batch, BertConfig(vocab_size=50), lambda row: f"a.tfrecord: record {row}")
        Traceback (most recent call last):
        ...
        keras_bert_impl.errors.UserError: a.tfrecord: record 0 has 99 in input_ids, but the model
        only knows 0 to 49 (vocab_size); use the vocabulary and configuration that the shards were
        made with.
    """
    length = batch["input_ids"].shape[1]
    limits = {
        "input_ids": (config.vocab_size, "vocab_size"),
        "masked_lm_ids": (config.vocab_size, "vocab_size"),
        "segment_ids": (config.type_vocab_size, "type_vocab_size"),
        "masked_lm_positions": (length, "the sequence length"),
        "next_sentence_labels": (2, "next or random"),
        "input_mask": (2, "padding or not"),
    }
    for name, (limit, meaning) in limits.items():
        values = batch.get(name)
        if values is None or not values.size or (values.min() >= 0 and values.max() < limit):
            continue
        wrong = (values < 0) | (values >= limit)
        row = int(np.flatnonzero(wrong.any(axis=-1))[0])
        raise UserError(
            f"{where(row)} has {values[row][wrong[row]][0]} in {name}, but the model only knows 0 "
            f"to {limit - 1} ({meaning}); use the vocabulary and configuration that the shards "
            "were made with."
        )
    _check_weights(batch.get("masked_lm_weights"), where)


def _check_weights(weights: np.ndarray | None, where: Callable[[int], str]) -> None:
    if weights is None:
        return
    wrong = ~np.isfinite(weights) | (weights < 0)
    if wrong.any():
        row = int(np.flatnonzero(wrong.any(axis=-1))[0])
        raise UserError(
            f"{where(row)} has {weights[row][wrong[row]][0]} in masked_lm_weights, but a weight is "
            "a number from 0 on; make this shard again."
        )
