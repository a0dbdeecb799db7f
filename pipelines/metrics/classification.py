"""Scores of class decisions, by scikit-learn: accuracy, F1 and Matthews' correlation coefficient.

scikit-learn's own functions take the labels first, warn where they divide by zero, and take seconds
to import; these take predictions first, as all metrics here do, and import it when they are called.
"""

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

Classes = Sequence[int] | np.ndarray


def accuracy(predictions: Classes, labels: Classes) -> float:
    """The share of predictions that equal their label.

    Args:
        predictions: [examples] predicted class ids.
        labels: [examples] true class ids.

    Example:
        >>> accuracy([0, 1, 1, 0], [0, 1, 0, 0])
        0.75
    """
    from sklearn.metrics import accuracy_score

    return float(accuracy_score(*_labels_and_predictions(predictions, labels)))


def f1_score(predictions: Classes, labels: Classes, positive: int = 1) -> float:
    """The harmonic mean of precision and recall of one class.

    It is 0 where that class is neither predicted nor true.

    Args:
        predictions: [examples] predicted class ids.
        labels: [examples] true class ids.

    Example:
        >>> f1_score([1, 1, 0, 0], [1, 0, 1, 0])
        0.5
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

    Example:
        >>> matthews_correlation([1, 1, 0, 0], [1, 1, 0, 0])
        1.0
        >>> matthews_correlation([1, 1, 1, 1], [1, 1, 0, 0])
        0.0
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
    if predicted.shape != true.shape or predicted.ndim != 1:
        raise ValueError(
            f"predictions {predicted.shape} and labels {true.shape} must be two vectors of one "
            "length"
        )
    if not len(true):
        raise ValueError("a score of no examples is not defined")
    return true, predicted
