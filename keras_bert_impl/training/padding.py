"""Leaving out what is padding in every example of a batch."""

import numpy as np

from keras_bert_impl.training.batches import Batch
from keras_bert_impl.training.objectives import ENCODER_INPUTS

_SHAPES = 8  # so many lengths at most: each new one is traced (and with XLA compiled) once


def trim_padding(batch: Batch) -> dict[str, np.ndarray]:
    """Cuts a batch's columns behind its longest example.

    Masked places take no part in the attention, so every real place's output stays what it was
    (but for rounding, and the draws of dropout); the time falls with the length, most of all for
    short sentences padded to a generous maximum. Lengths are rounded up to eighths of the whole
    one (to 8 places at least), so that there are few shapes.

    Args:
        batch: the encoder's inputs [batch, length]; other features are left as they are. A batch
            without `input_mask` stays whole.

    Returns:
        The same arrays, the encoder's inputs [batch, shorter length].

    Example:
        >>> mask = np.zeros([2, 128], np.int32)
        >>> mask[0, :5], mask[1, :20] = 1, 1
        >>> trimmed = trim_padding({"input_mask": mask, "label_ids": np.arange(2)})
        >>> trimmed["input_mask"].shape, trimmed["label_ids"].shape
        ((2, 32), (2,))
    """
    mask = batch.get("input_mask")
    if mask is None:
        return dict(batch)
    length = mask.shape[1]
    used = np.flatnonzero(mask.any(axis=0))
    longest = int(used[-1]) + 1 if used.size else 1
    grain = max(8, -(-length // _SHAPES))
    kept = min(length, -(-longest // grain) * grain)
    return {
        name: array[:, :kept] if name in ENCODER_INPUTS else array for name, array in batch.items()
    }
