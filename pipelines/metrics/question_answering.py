"""Scores of answered questions as the official scripts of SQuAD, KorQuAD and TriviaQA give them.

All take predictions and right answers by the question's identifier, and give percent. Values are
added one after the other in the order of the questions, as the scripts add them, so that the last
digit is theirs. Each data set has rules of its own for what of an answer counts: SQuAD's words,
TriviaQA's words, KorQuAD's characters. A question of SQuAD 2.0 is left unanswered where its null
odds (how much surer the model is of no answer than of its best answer) are above the threshold.
"""

import math
import operator
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

from keras_bert_impl.errors import UserError, shown

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_REMOVED = str.maketrans("", "", string.punctuation)
_TRIVIA_SPACES = str.maketrans(dict.fromkeys(string.punctuation + "‘’´`", " "))
_KORQUAD_SPACES = str.maketrans(dict.fromkeys("'\"《》<>〈〉()‘’", " "))


def squad_words(text: str) -> list[str]:
    """The words of an answer, lower-cased, without punctuation and English articles."""
    return _ARTICLES.sub(" ", text.lower().translate(_REMOVED)).split()


def trivia_words(text: str) -> list[str]:
    """As `squad_words`, but punctuation separates words."""
    return _ARTICLES.sub(" ", text.lower().translate(_TRIVIA_SPACES)).split()


def korquad_words(text: str) -> list[str]:
    """The words of an answer, lower-cased; brackets and quotes separate words, other signs go."""
    return text.translate(_KORQUAD_SPACES).lower().translate(_REMOVED).split()


def shared_f1(prediction: Sequence[str], answer: Sequence[str]) -> float:
    """The F1 of two bags of words (or characters); 0 where they share none."""
    common = sum((Counter(prediction) & Counter(answer)).values())
    if not common:
        return 0.0
    precision, recall = common / len(prediction), common / len(answer)
    return 2 * precision * recall / (precision + recall)


class Scores(NamedTuple):
    """How good one prediction is: the best over its question's answers, each from 0 to 1."""

    exact: float
    f1: float


def best_scores(
    prediction: str,
    answers: Iterable[str],
    words: Callable[[str], list[str]],
    f1: Callable[[list[str], list[str]], float] = shared_f1,
) -> Scores:
    """Compares a prediction with every answer of its question."""
    guessed, right = words(prediction), list(map(words, answers))
    return Scores(float(guessed in right), max((f1(guessed, one) for one in right), default=0.0))


def best_threshold(
    scores: Mapping[str, float],
    predictions: Mapping[str, str],
    null_odds: Mapping[str, float],
    answers: Mapping[str, Any],
) -> tuple[float, float]:
    """The highest score and its threshold, as the official script of SQuAD 2.0 finds them.

    Of a question without an answer its answers are false, or none.
    """
    score = best = float(sum(not right for right in answers.values()))
    threshold = 0.0
    for identifier in sorted(null_odds, key=null_odds.__getitem__):
        if identifier not in scores:
            continue
        if answers[identifier]:
            score += scores[identifier]
        elif predictions[identifier]:
            score -= 1
        if score > best:
            best, threshold = score, null_odds[identifier]
    return 100.0 * best / len(scores), threshold


def threshold_between(null_odds: Iterable[float], threshold: float) -> float:
    """A threshold that decides alike, in the middle to the next greater odds (at most 1 above).

    Example:
        >>> threshold_between([-3.5, 2.0, 2.5], 2.0), threshold_between([-3.5, 2.0], 2.0)
        (2.25, 3.0)
    """
    greater = min((odds for odds in null_odds if odds > threshold), default=math.inf)
    return min((threshold + greater) / 2, threshold + 1.0)


Predictions = Mapping[str, str]
Answers = Mapping[str, Sequence[str]]
"""Identifier to the right answers, in the order of the questions; no answer where unanswerable."""


def _characters_f1(prediction: list[str], answer: list[str]) -> float:
    return shared_f1("".join(prediction), "".join(answer))


squad_v1_question = partial(best_scores, words=squad_words)
korquad_question = partial(best_scores, words=korquad_words, f1=_characters_f1)
"""The scores of one prediction by the rules of SQuAD 1.1 and of KorQuAD 1.0."""


def span_scores(
    predictions: Predictions, answers: Mapping[str, Any], score: Callable[[str, Any], Scores]
) -> dict[str, float]:
    """`exact_match` and `f1` by one prediction's; a question without one counts as wrong."""
    exact, f1 = _percent(_scored(predictions, answers, score).values(), len(answers))
    return {"exact_match": exact, "f1": f1}


def trivia_scores(
    predictions: Predictions, answers: Mapping[str, Mapping[str, Any]]
) -> dict[str, float]:
    """The figures of TriviaQA and their counts; a question without a prediction counts as wrong."""

    def score(prediction: str, answer: Mapping[str, Any]) -> Scores:
        human = [" ".join(trivia_words(text)) for text in answer.get("HumanAnswers", [])]
        return best_scores(prediction, [*answer["NormalizedAliases"], *human], trivia_words)

    return {
        **span_scores(predictions, answers, score),
        "common": len(predictions.keys() & answers.keys()),
        "denominator": len(answers),
        "pred_len": len(predictions),
        "gold_len": len(answers),
    }


def squad_v2_scores(
    predictions: Predictions,
    answers: Answers,
    null_odds: Mapping[str, float] | None = None,
    threshold: float = 1.0,
) -> dict[str, float]:
    """The figures of SQuAD 2.0, under the names of its official script.

    A prediction "" is no answer. With `null_odds`, how sure "no answer" is, come the best
    thresholds.
    """
    _check_complete(answers, predictions, "prediction")
    before = _scored(predictions, answers, squad_v2_question)
    if null_odds is None:
        return _by_answerability(before, answers)
    _check_complete(answers, null_odds, "null odds")
    after = {
        identifier: Scores(*[float(not answers[identifier])] * 2)
        if null_odds[identifier] > threshold
        else score
        for identifier, score in before.items()
    }
    figures = _by_answerability(after, answers)
    for number, name in enumerate(Scores._fields):
        values = {identifier: scores[number] for identifier, scores in before.items()}
        best, at = best_threshold(values, predictions, null_odds, answers)
        figures |= {f"best_{name}": best, f"best_{name}_thresh": at}
    return figures


def squad_v2_question(prediction: str, answers: Sequence[str]) -> Scores:
    """The scores of one prediction by the rules of SQuAD 2.0.

    An answer without a word (an article only, say) is none; without any answer only a prediction
    without a word is right.
    """
    right = [text for text in answers if squad_words(text)] or [""]
    return best_scores(prediction, right, squad_words, _f1_or_both_empty)


def _f1_or_both_empty(prediction: list[str], answer: list[str]) -> float:
    if prediction and answer:
        return shared_f1(prediction, answer)
    return float(prediction == answer)


def _by_answerability(scored: Mapping[str, Scores], answers: Answers) -> dict[str, float]:
    figures = dict[str, float]()
    for prefix, kinds in (("", (True, False)), ("HasAns_", (True,)), ("NoAns_", (False,))):
        if part := [scores for name, scores in scored.items() if bool(answers[name]) in kinds]:
            exact, f1 = _percent(part, len(part))
            figures |= {f"{prefix}exact": exact, f"{prefix}f1": f1, f"{prefix}total": len(part)}
    return figures


def _percent(scores: Iterable[Scores], total: int) -> list[float]:
    """Both sums of `total` in percent, added from the left: `sum` is more exact in new Pythons."""
    sums = [reduce(operator.add, values) for values in zip(*scores, strict=True)]
    return [100.0 * one / total for one in sums]


def _scored(
    predictions: Predictions, answers: Mapping[str, Any], score: Callable[[str, Any], Scores]
) -> dict[str, Scores]:
    """The scores of the questions that have a prediction."""
    if not answers:
        raise UserError("There are no questions to score; name a file with questions.")
    scored = {
        identifier: score(predictions[identifier], right)
        for identifier, right in answers.items()
        if identifier in predictions
    }
    if not scored:
        raise UserError(
            f"None of the {len(predictions)} predictions is for one of the {len(answers)} "
            f"questions (the first is {shown(next(iter(answers)))}); name the questions' own file."
        )
    return scored


def _check_complete(answers: Answers, found: Mapping[str, object], what: str) -> None:
    missing = [identifier for identifier in answers if identifier not in found]
    if missing:
        raise UserError(
            f"{len(missing)} of {len(answers)} questions have no {what} (the first is "
            f"{shown(missing[0])}); name the predictions that were made of these questions."
        )
