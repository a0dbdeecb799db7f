"""The score of a model that has learned nothing: the same answer to every example."""

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

import numpy as np

Metric = Callable[[np.ndarray, np.ndarray], float]

CONSTANT = "constant_"
"""What stands before the figures of one answer, beside those of a model that gave no other."""

_ALIKE = 0.01
"""Numbers that differ by less than this share of the labels' deviation count as one answer."""
_ENOUGH = 10
"""Of fewer answers, all may be alike by chance."""


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


@dataclass
class AnswerVariety:
    """Whether all answers are the same one though the right answers differ; kept in O(1) memory.

    Numbers are the same where they differ by less than a hundredth of the right ones' deviation.

    Attributes:
        count: how many answers there were.
        answer: the first one.
        varies: whether there are two that differ; of numbers not known before all are counted.

    Example:
        >>> variety = AnswerVariety()
        >>> for right in ("yes", "no", "yes", "no", "yes") * 2:
        ...     variety.add("no", right)
        >>> variety.is_constant, variety.count, variety.answer
        (True, 10, 'no')
        >>> variety.add("yes", "no")
        >>> variety.is_constant
        False
    """

    count: int = 0
    answer: Hashable = None
    varies: bool = False
    _right: Hashable = None
    _right_varies: bool = False
    _least: float = math.inf
    _most: float = -math.inf
    _mean: float = 0.0
    _squares: float = 0.0

    def add(self, answer: Hashable, right: Hashable) -> None:
        """Counts one answer and the right one, which must be of the same kind."""
        self.count += 1
        if self.count == 1:
            self.answer, self._right = answer, right
        self._right_varies |= right != self._right
        if isinstance(answer, float) and isinstance(right, float):
            self._least, self._most = min(self._least, answer), max(self._most, answer)
            before = right - self._mean  # Welford's way to the sum of squared distances
            self._mean += before / self.count
            self._squares += before * (right - self._mean)
        else:
            self.varies |= answer != self.answer

    @property
    def is_constant(self) -> bool:
        """Whether ten answers or more are all alike, and the right ones are not."""
        if self.count < _ENOUGH or not self._right_varies:
            return False
        if self._least > self._most:
            return not self.varies
        deviation = math.sqrt(self._squares / self.count)
        return self._most - self._least < _ALIKE * deviation
