"""One vector out of several: layers combined, tokens pooled."""

import numpy as np

from pipelines.features.extractor import LineFeatures


def pool(features: LineFeatures, pooling: str, combination: str) -> np.ndarray:
    """One line's vectors, layers combined and tokens pooled.

    Args:
        features: the line's vectors.
        pooling: one of `POOLINGS`.
        combination: one of `COMBINATIONS`.

    Returns:
        float32 [tokens, width], or [width] if pooled.

    Example:
        >>> line = LineFeatures(["a", "b"], np.array([1, 2]), np.arange(4.0).reshape([2, 2, 1]))
        >>> pool(line, "mean", "concat").tolist(), pool(line, "cls", "sum").tolist()
        ([0.5, 2.5], [2.0])
    """
    if combination == "sum":
        tokens = features.vectors.sum(axis=0)
    else:
        tokens = np.concatenate(list(features.vectors), axis=-1)
    if pooling == "none":
        return tokens
    return tokens[0] if pooling == "cls" else tokens.mean(axis=0)
