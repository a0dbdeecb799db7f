"""Scores of classes, of sets of labels and of numbers, by scikit-learn and SciPy.

Their own functions take the labels first, warn where they divide by zero, and take seconds to
import; these take predictions first, as all metrics here do, and import them when they are called.
"""

import warnings
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Values = Sequence[float] | np.ndarray


def accuracy(predictions: Values, labels: Values) -> float:
    """The share of predictions that equal their label: [examples] class ids both."""
    from sklearn.metrics import accuracy_score

    return float(accuracy_score(labels, predictions))


def f1_score(predictions: Values, labels: Values, positive: int = 1) -> float:
    """The harmonic mean of precision and recall of one class; 0 where it never occurs."""
    from sklearn.metrics import f1_score as f1_scores

    # Of one class among any number: "binary" would refuse a third one.
    score = f1_scores(labels, predictions, labels=[positive], average="macro", zero_division=0)
    return float(score)


def matthews_correlation(predictions: Values, labels: Values) -> float:
    """Matthews' correlation coefficient of classes; 0 where all are predicted, or are, the same."""
    from sklearn.metrics import matthews_corrcoef

    with warnings.catch_warnings(action="ignore"):  # of a set with a single class
        return float(matthews_corrcoef(labels, predictions))


def pearson_correlation(predictions: Values, labels: Values) -> float:
    """Pearson's correlation coefficient: how well a straight line maps one on the other.

    It is NaN where all predictions, or all labels, are the same (a single one is).
    """
    from scipy.stats import pearsonr

    pair = [np.asarray(values, np.float64) for values in (predictions, labels)]
    if len(pair[0]) == 1:  # SciPy refuses it
        return float("nan")
    with warnings.catch_warnings(action="ignore"):  # of values that are all the same
        return float(pearsonr(*pair).statistic)


def spearman_correlation(predictions: Values, labels: Values) -> float:
    """Spearman's rank correlation: how well any rising curve maps one on the other.

    Equal values share the mean of their ranks. It is NaN where all predictions, or all labels, are
    the same.
    """
    from scipy.stats import rankdata

    # Not `spearmanr`, which gives another last digit where predictions and labels change places.
    return pearson_correlation(rankdata(predictions), rankdata(labels))


def class_figures(labels: NDArray, predictions: NDArray) -> dict[str, float]:
    """Accuracy, macro and micro F1, and of one class an example Matthews' correlation coefficient.

    Labels and predictions are int [examples], or [examples, labels] with a 1 for each label that
    holds; an example is right where all its labels are.
    """
    from sklearn import metrics

    means = {
        f"{mean}_f1": metrics.f1_score(labels, predictions, average=mean, zero_division=0)
        for mean in ("macro", "micro")
    }
    found = {"accuracy": metrics.accuracy_score(labels, predictions), **means}
    if labels.ndim == 1:
        found["matthews_correlation"] = matthews_correlation(predictions, labels)
    return {name: float(value) for name, value in found.items()}


def figures_by_class(
    labels: NDArray, predictions: NDArray, num_classes: int
) -> Iterator[tuple[int, int, float, float, float]]:
    """Of each class its examples, how many were taken for it, precision, recall and F1.

    Arguments are those of `class_figures`; a figure is 0 where 0 is divided by 0.
    """
    from sklearn.metrics import precision_recall_fscore_support

    classes = range(num_classes)
    precision, recall, f1, examples = precision_recall_fscore_support(
        labels, predictions, labels=classes, zero_division=0
    )
    if labels.ndim == 1:
        predicted = np.bincount(predictions, minlength=num_classes)
    else:
        predicted = predictions.sum(axis=0)
    yield from zip(*(x.tolist() for x in (examples, predicted, precision, recall, f1)), strict=True)
