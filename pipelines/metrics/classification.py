"""Scores of classes, of sets of labels and of numbers, by scikit-learn and SciPy.

Their own functions take the labels first, warn where they divide by zero, and take seconds to
import; these take predictions first, as all metrics here do, and import them when they are called.
"""

import warnings
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Classes = Sequence[int] | np.ndarray


def accuracy(predictions: Classes, labels: Classes) -> float:
    """The share of predictions that equal their label.

    Args:
        predictions: [examples] predicted class ids.
        labels: [examples] true class ids.
    """
    from sklearn.metrics import accuracy_score

    return float(accuracy_score(*_labels_and_predictions(predictions, labels)))


def f1_score(predictions: Classes, labels: Classes, positive: int = 1) -> float:
    """The harmonic mean of precision and recall of one class.

    It is 0 where that class is neither predicted nor true.

    Args:
        predictions: [examples] predicted class ids.
        labels: [examples] true class ids.
    """
    from sklearn.metrics import f1_score as f1_scores

    pair = _labels_and_predictions(predictions, labels)
    # Of one class among any number: "binary" would refuse a third one.
    return float(f1_scores(*pair, labels=[positive], average="macro", zero_division=0))


def matthews_correlation(predictions: Classes, labels: Classes) -> float:
    """Matthews' correlation coefficient, for two or more classes, between -1 and 1.

    It is 0 where all predictions, or all labels, are of one class.

    Args:
        predictions: [examples] predicted class ids.
        labels: [examples] true class ids.
    """
    from sklearn.metrics import matthews_corrcoef

    pair = _labels_and_predictions(predictions, labels)
    with warnings.catch_warnings(action="ignore"):  # of a set with a single class
        return float(matthews_corrcoef(*pair))


def _labels_and_predictions(
    predictions: ArrayLike, labels: ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    """Both in scikit-learn's order."""
    predicted, true = np.asarray(predictions), np.asarray(labels)
    if predicted.shape != true.shape or predicted.ndim != 1 or not len(true):
        raise ValueError(
            f"predictions {predicted.shape} and labels {true.shape} must be two vectors of one "
            "length, which is not 0"
        )
    return true, predicted


Values = Sequence[float] | np.ndarray


def pearson_correlation(predictions: Values, labels: Values) -> float:
    """Pearson's correlation coefficient: how well a straight line maps one on the other.

    It is NaN where all predictions, or all labels, are the same (a single one is).

    Args:
        predictions: [examples] predicted values.
        labels: [examples] true values.
    """
    from scipy.stats import pearsonr

    pair = _labels_and_predictions(predictions, labels)
    true, predicted = (one.astype(np.float64) for one in pair)
    if len(true) == 1:  # SciPy refuses it
        return float("nan")
    with warnings.catch_warnings(action="ignore"):  # of values that are all the same
        return float(pearsonr(predicted, true).statistic)


def spearman_correlation(predictions: Values, labels: Values) -> float:
    """Spearman's rank correlation: how well any rising curve maps one on the other.

    Equal values share the mean of their ranks. It is NaN where all predictions, or all labels, are
    the same.

    Args:
        predictions: [examples] predicted values.
        labels: [examples] true values.
    """
    from scipy.stats import rankdata

    # Not `spearmanr`, which gives another last digit where predictions and labels change places.
    true, predicted = _labels_and_predictions(predictions, labels)
    return pearson_correlation(rankdata(predicted), rankdata(true))


class ClassFigures(NamedTuple):
    """The figures of each class.

    Attributes:
        examples: int64 [classes], how many examples are of the class.
        predicted: int64 [classes], how many were taken for it.
        precision: float64 [classes], the share of the predicted ones that are of the class.
        recall: float64 [classes], the share of its examples that were found.
        f1: float64 [classes], the harmonic mean of both. All three are 0 where 0 is divided by 0.
    """

    examples: NDArray[np.int64]
    predicted: NDArray[np.int64]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    f1: NDArray[np.float64]


class ClassScores:
    """Scores of one class an example.

    Example:
        >>> scores = ClassScores(2)
        >>> for label, prediction in [(0, 0), (0, 1), (1, 1), (1, 1)]:
        ...     scores.add(label, prediction)
        >>> scores.figures()["accuracy"], scores.matrix().tolist()
        (0.75, [[1, 1], [0, 2]])
    """

    def __init__(self, num_classes: int) -> None:
        self._num_classes = num_classes
        self._counts: Counter[tuple[int, int]] = Counter()

    def add(self, label: int, prediction: int) -> None:
        """Counts an example."""
        self._counts[label, prediction] += 1

    def figures(self) -> dict[str, float]:
        """Gives accuracy, macro F1, micro F1 and Matthews' correlation coefficient.

        Macro F1 is the mean over the classes that are labels or predictions of some example, as by
        scikit-learn. Micro F1 of one class an example is the accuracy.
        """
        from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

        labels, predictions, weights = self._cells()
        if not len(weights):
            raise ValueError("a score of no examples is not defined")
        pair = (labels, predictions)
        micro, macro = (
            f1_score(*pair, average=mean, sample_weight=weights, zero_division=0)
            for mean in ("micro", "macro")
        )
        with warnings.catch_warnings(action="ignore"):  # of a set with a single class
            matthews = matthews_corrcoef(*pair, sample_weight=weights)
        return {
            "accuracy": float(accuracy_score(*pair, sample_weight=weights)),
            "macro_f1": float(macro),
            "micro_f1": float(micro),
            "matthews_correlation": float(matthews),
        }

    def by_class(self) -> ClassFigures:
        """Gives the figures of each class."""
        from sklearn.metrics import precision_recall_fscore_support

        labels, predictions, weights = self._cells()
        classes = range(self._num_classes)
        precision, recall, f1, _ = precision_recall_fscore_support(
            labels, predictions, labels=classes, sample_weight=weights, zero_division=0
        )
        sizes = (labels, predictions)
        examples, predicted = (
            np.bincount(one, weights, minlength=self._num_classes).astype(np.int64) for one in sizes
        )
        return ClassFigures(examples, predicted, precision, recall, f1)

    def matrix(self, classes: Sequence[int] | None = None) -> NDArray[np.int64]:
        """Gives the confusion matrix: int64 [classes, classes], rows are labels."""
        shown = range(self._num_classes) if classes is None else classes
        return np.array([[self._counts[label, other] for other in shown] for label in shown])

    def _cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Labels, predictions and counts of the cells that are not empty."""
        pairs = np.array(list(self._counts), np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1], np.array(list(self._counts.values()), np.int64)


class LabelSetScores:
    """Scores of several labels an example.

    Example:
        >>> scores = LabelSetScores(2)
        >>> scores.add(np.array([1, 0]), np.array([1, 1]))
        >>> scores.figures()["accuracy"], scores.figures()["micro_f1"]
        (0.0, 0.6666666666666666)
    """

    def __init__(self, num_labels: int) -> None:
        self._held = np.zeros(num_labels, np.int64)
        self._predicted = np.zeros(num_labels, np.int64)
        self._found = np.zeros(num_labels, np.int64)
        self._examples = self._right = 0

    def add(self, labels: NDArray, predictions: NDArray) -> None:
        """Counts an example.

        Args:
            labels: [labels], 1 where the label holds.
            predictions: [labels], 1 where it is predicted.
        """
        self._held += labels
        self._predicted += predictions
        self._found += labels * predictions
        self._examples += 1
        self._right += bool((labels == predictions).all())

    def figures(self) -> dict[str, float]:
        """Gives accuracy (all labels of an example right), macro F1 and micro F1."""
        if not self._examples:
            raise ValueError("a score of no examples is not defined")
        counts = (self._held, self._predicted, self._found)
        return {
            "accuracy": self._right / self._examples,
            "macro_f1": float(_f1(*counts).mean()),
            "micro_f1": float(_f1(*(count.sum() for count in counts))),
        }

    def by_class(self) -> ClassFigures:
        """Gives the figures of each label."""
        return ClassFigures(
            self._held,
            self._predicted,
            _share(self._found, self._predicted),
            _share(self._found, self._held),
            _f1(self._held, self._predicted, self._found),
        )


def _share(part: NDArray, whole: NDArray) -> NDArray[np.float64]:
    return np.asarray(part / np.maximum(whole, 1), np.float64)


def _f1(held: NDArray, predicted: NDArray, found: NDArray) -> NDArray[np.float64]:
    return _share(2 * found, held + predicted)
