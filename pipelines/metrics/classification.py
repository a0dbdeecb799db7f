"""Scores of classes, of sets of labels and of numbers; correlations are SciPy's.

They take predictions first. Those of classes are a few counts; scikit-learn gives the same numbers,
but takes a second of every run to import.
"""

import math
import warnings
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Values = Sequence[float] | np.ndarray


def accuracy(predictions: Values, labels: Values) -> float:
    """The share of predictions that equal their label: [examples] class ids both."""
    return float(np.mean(np.equal(predictions, labels)))


def f1_score(predictions: Values, labels: Values, positive: int = 1) -> float:
    """The harmonic mean of precision and recall of one class; 0 where it never occurs."""
    found, right = (np.equal(values, positive) for values in (predictions, labels))
    return float(_share(2 * np.sum(found & right), np.sum(found) + np.sum(right)))


def matthews_correlation(predictions: Values, labels: Values) -> float:
    """Matthews' correlation coefficient of classes; 0 where all are predicted, or are, the same."""
    _, pair = np.unique(np.stack([predictions, labels]), return_inverse=True)
    hits, examples, predicted = _counts(*pair.reshape(2, -1)[::-1])
    size = len(labels)
    together = hits.sum() * size - examples @ predicted
    # As floats: these are of the fourth power of the examples.
    apart = math.prod(float(size**2 - counts @ counts) for counts in (examples, predicted))
    return float(together / math.sqrt(apart)) if apart else 0.0


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
    holds; an example is right where all its labels are. The macro F1 is of classes that occur,
    and of all labels where an example may have several.
    """
    several, right = labels.ndim == 2, labels == predictions
    hits, examples, predicted = _counts(labels, predictions)
    occur = slice(None) if several else examples + predicted > 0
    found = {
        "accuracy": np.mean(right.all(axis=1) if several else right),
        "macro_f1": np.mean(_share(2 * hits, examples + predicted)[occur]),
        "micro_f1": _share(2 * hits.sum(), examples.sum() + predicted.sum()),
    }
    if not several:
        found["matthews_correlation"] = matthews_correlation(predictions, labels)
    return {name: float(value) for name, value in found.items()}


def figures_by_class(
    labels: NDArray, predictions: NDArray, num_classes: int
) -> Iterator[tuple[int, int, float, float, float]]:
    """Of each class its examples, how many were taken for it, precision, recall and F1.

    Arguments are those of `class_figures`; a figure is 0 where 0 is divided by 0.
    """
    hits, examples, predicted = _counts(labels, predictions, num_classes)
    f1 = _share(2 * hits, examples + predicted)
    columns = (examples, predicted, _share(hits, predicted), _share(hits, examples), f1)
    yield from zip(*(column.tolist() for column in columns), strict=True)


def _counts(labels: NDArray, predictions: NDArray, num_classes: int = 0) -> tuple[NDArray, ...]:
    """Of each class how often it is predicted rightly, holds, and is predicted: int [classes]."""
    if labels.ndim == 2:
        return tuple(one.sum(axis=0) for one in (labels * predictions, labels, predictions))
    size = max(num_classes, *(int(one.max(initial=-1)) + 1 for one in (labels, predictions)))
    right = labels[labels == predictions]
    return tuple(np.bincount(one, minlength=size) for one in (right, labels, predictions))


def _share(part: ArrayLike, whole: ArrayLike) -> NDArray:
    """What share of the whole a part is; 0 where there is no whole."""
    return np.divide(part, whole, out=np.zeros(np.shape(whole)), where=np.greater(whole, 0))
