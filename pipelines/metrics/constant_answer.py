"""The score of a model that has learned nothing: the same answer to every example."""

import math
from collections.abc import Callable, Mapping

import numpy as np

Metric = Callable[[np.ndarray, np.ndarray], float]


def constant_answer(labels: np.ndarray) -> np.ndarray:
    """The answer that is right most often, to all examples.

    Args:
        labels: int [examples] classes, int [examples, labels] of 0 and 1, or float [examples].

    Returns:
        An array of the same shape: the most frequent class, the labels that hold more often than
        not, or the mean.

    Example:
        >>> constant_answer(np.array([2, 0, 2])), constant_answer(np.array([1.0, 2.0]))
        (array([2, 2, 2]), array([1.5, 1.5]))
    """
    if labels.dtype.kind == "f":
        return np.full_like(labels, labels.mean())
    if labels.ndim > 1:
        return np.broadcast_to(labels.mean(axis=0) > 0.5, labels.shape).astype(labels.dtype)
    return np.full_like(labels, np.bincount(labels).argmax())


def constant_scores(metrics: Mapping[str, Metric], labels: np.ndarray) -> dict[str, float]:
    """The figures of the constant answer; a correlation, which is NaN there, counts as 0.

    Example:
        >>> from pipelines.metrics.classification import accuracy, matthews_correlation
        >>> metrics = {"accuracy": accuracy, "matthews_correlation": matthews_correlation}
        >>> constant_scores(metrics, np.array([1, 1, 1, 0]))
        {'accuracy': 0.75, 'matthews_correlation': 0.0}
    """
    answer = constant_answer(labels)
    scores = {name: metric(answer, labels) for name, metric in metrics.items()}
    return {name: 0.0 if math.isnan(score) else score for name, score in scores.items()}
