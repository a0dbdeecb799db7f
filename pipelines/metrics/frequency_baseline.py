"""The score of guessing by word frequency: the bar that a masked-word model has to clear."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np


class FrequencyBaseline(NamedTuple):
    """How well the most frequent token, and the tokens' shares, predict the masked tokens.

    Attributes:
        accuracy: share of the masked positions that the most frequent token gets right.
        loss: mean cross-entropy in nats of the shares at the masked positions.
    """

    accuracy: float
    loss: float


def count_masked_tokens(batches: Iterable[Mapping[str, np.ndarray]], vocab_size: int) -> np.ndarray:
    """Counts how often each token stands at a masked position.

    Args:
        batches: each with `masked_lm_ids` and `masked_lm_weights`, [batch, predictions].
        vocab_size: the number of tokens.

    Returns:
        Counts, int64 [vocab_size].

    Example:
        >>> batch = {"masked_lm_ids": np.array([[2, 2, 0]]),
        ...          "masked_lm_weights": np.array([[1.0, 1.0, 0.0]])}
        >>> count_masked_tokens([batch], 4).tolist()
        [0, 0, 2, 0]
    """
    counts = np.zeros(vocab_size, np.int64)
    for batch in batches:
        real = batch["masked_lm_ids"][batch["masked_lm_weights"] > 0]
        counts += np.bincount(real, minlength=vocab_size)
    return counts


def frequency_baseline(train_counts: np.ndarray, held_out_counts: np.ndarray) -> FrequencyBaseline:
    """Scores frequency guessing on held-out positions (shares with add-one smoothing).

    Args:
        train_counts: token counts of the training data, [vocab_size].
        held_out_counts: token counts at the positions to guess, [vocab_size].

    Example:
        >>> frequency_baseline(np.array([7, 1, 0]), np.array([3, 1, 0])).accuracy
        0.75
    """
    shares = (train_counts + 1) / (train_counts + 1).sum()
    total = max(int(held_out_counts.sum()), 1)
    accuracy = held_out_counts[train_counts.argmax()] / total
    loss = -(held_out_counts * np.log(shares)).sum() / total
    return FrequencyBaseline(float(accuracy), float(loss))
