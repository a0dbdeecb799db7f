"""Longest-first truncation: how many tokens of two segments stay, in NumPy and in a graph.

The original removes tokens one by one, always from the longer segment, from B's where both are as
long. What remains follows from the two lengths alone. Which end the tokens are removed from is
another rule: the back in fine-tuning, either end at random in pre-training.
"""

from typing import Any

import numpy as np


def truncated_lengths(length_a: Any, length_b: Any, budget: Any) -> tuple[Any, Any]:
    """The lengths of both segments after truncation.

    Args:
        length_a: tokens of A, an integer or integers [pairs].
        length_b: tokens of B, likewise.
        budget: how many tokens both may have together, an integer or integers [pairs].

    Returns:
        Two integers or integers [pairs], whose sum is at most `budget`.

    Example:
        >>> a, b = truncated_lengths(np.array([3, 9, 9, 5]), np.array([4, 2, 8, 6]), 10)
        >>> a.tolist(), b.tolist()
        ([3, 8, 5, 5], [4, 2, 5, 5])
    """
    excess = np.maximum(length_a + length_b - budget, 0)
    # First the longer segment loses what it has more, then both lose in turns, B first.
    surplus_of_a = np.clip(length_a - length_b, 0, excess)
    surplus_of_b = np.clip(length_b - length_a, 0, excess)
    shared = excess - surplus_of_a - surplus_of_b
    kept_a = length_a - surplus_of_a - shared // 2
    return kept_a, length_b - surplus_of_b - (shared + 1) // 2


def truncated_lengths_in_graph(length_a: Any, length_b: Any, budget: Any) -> tuple[Any, Any]:
    """The same of tensors: int32 [pairs] each."""
    import tensorflow as tf

    excess = tf.maximum(length_a + length_b - budget, 0)
    surplus_of_a = tf.clip_by_value(length_a - length_b, 0, excess)
    surplus_of_b = tf.clip_by_value(length_b - length_a, 0, excess)
    shared = excess - surplus_of_a - surplus_of_b
    kept_a = length_a - surplus_of_a - shared // 2
    return kept_a, length_b - surplus_of_b - (shared + 1) // 2
