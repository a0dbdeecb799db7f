"""Pre-training examples of random ids: as costly as real ones, and made in no time."""

import numpy as np


def made_up_examples(
    rows: int, length: int, predictions: int, vocab_size: int, seed: int = 0
) -> dict[str, np.ndarray]:
    """Makes full-length examples.

    Args:
        rows: how many.
        length: pieces of each.
        predictions: masked places of each.
        vocab_size: ids are below it.
        seed: fixes the draws.

    Returns:
        The features of pre-training, [rows, ...].
    """
    draws = np.random.default_rng(seed)
    pieces = draws.integers(5, vocab_size, [rows, length], np.int32)
    return {
        "input_ids": pieces,
        "input_mask": np.ones([rows, length], np.int32),
        "segment_ids": np.repeat(np.arange(length)[None] >= length // 2, rows, 0).astype(np.int32),
        "masked_lm_positions": draws.integers(1, length, [rows, predictions], np.int32),
        "masked_lm_ids": draws.integers(5, vocab_size, [rows, predictions], np.int32),
        "masked_lm_weights": np.ones([rows, predictions], np.float32),
        "next_sentence_labels": draws.integers(0, 2, [rows, 1], np.int32),
    }
