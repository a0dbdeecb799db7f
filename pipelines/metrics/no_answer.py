"""Figures over all thresholds of "there is no answer": the best one, and precision and recall.

A question is left unanswered where its null odds (how much surer the model is of no answer than of
its best answer) are above the threshold.
"""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple


class BestThreshold(NamedTuple):
    """The threshold with the highest score.

    Attributes:
        score: the mean score of all questions at that threshold, in percent.
        threshold: one of the questions' null odds; 0.0 where answering nothing is best.
    """

    score: float
    threshold: float


def best_threshold(
    scores: Mapping[str, float],
    predictions: Mapping[str, str],
    null_odds: Mapping[str, float],
    has_answer: Mapping[str, bool],
) -> BestThreshold:
    """Finds the threshold with the highest score, as the official script of SQuAD 2.0 does.

    Args:
        predictions: identifier to the answer; "" is no answer.

    Example:
        >>> best_threshold({"x": 1.0, "y": 0.0}, {"x": "red", "y": "blue"},
        ...                {"x": -3.5, "y": 2.0}, {"x": True, "y": False})
        BestThreshold(score=100.0, threshold=-3.5)
    """
    score = best = float(sum(not answered for answered in has_answer.values()))
    threshold = 0.0
    for identifier in sorted(null_odds, key=null_odds.__getitem__):
        if identifier not in scores:
            continue
        if has_answer[identifier]:
            score += scores[identifier]
        elif predictions[identifier]:
            score -= 1
        if score > best:
            best, threshold = score, null_odds[identifier]
    return BestThreshold(100.0 * best / len(scores), threshold)


def threshold_between(null_odds: Iterable[float], threshold: float) -> float:
    """A threshold that decides alike, in the middle to the next greater odds (at most 1 above).

    Example:
        >>> threshold_between([-3.5, 2.0, 2.5], 2.0), threshold_between([-3.5, 2.0], 2.0)
        (2.25, 3.0)
    """
    greater = min((odds for odds in null_odds if odds > threshold), default=math.inf)
    return min((threshold + greater) / 2, threshold + 1.0)


class PrecisionRecall(NamedTuple):
    """A precision-recall curve over all thresholds.

    Attributes:
        precision: of the answered questions, the share answered rightly; 1.0 at the beginning.
        recall: of the questions with an answer, the share answered rightly; rises from 0.0.
        average: the mean precision over the recall, in percent.
    """

    precision: list[float]
    recall: list[float]
    average: float


def precision_recall(
    scores: Mapping[str, float], null_odds: Mapping[str, float], has_answer: Mapping[str, bool]
) -> PrecisionRecall:
    """Makes the curve of the official script of SQuAD 2.0.

    Example:
        >>> precision_recall({"x": 1.0, "y": 0.0}, {"x": -3.5, "y": 2.0}, {"x": True, "y": False})
        PrecisionRecall(precision=[1.0, 1.0, 0.5], recall=[0.0, 1.0, 1.0], average=100.0)
    """
    order = sorted(null_odds, key=null_odds.__getitem__)
    right, average = 0.0, 0.0
    precision, recall = [1.0], [0.0]
    total = sum(has_answer.values())
    for count, identifier in enumerate(order, start=1):
        if has_answer[identifier]:
            right += scores[identifier]
        if count < len(order) and null_odds[identifier] == null_odds[order[count]]:
            continue  # no threshold lies between equal odds
        precision.append(right / count)
        recall.append(right / total if total else 0.0)
        average += precision[-1] * (recall[-1] - recall[-2])
    return PrecisionRecall(precision, recall, 100.0 * average)
