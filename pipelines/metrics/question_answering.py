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
from functools import reduce
from typing import Any, NamedTuple

from keras_bert_impl.errors import UserError, shown

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_REMOVED = str.maketrans("", "", string.punctuation)
_TRIVIA_SPACES = str.maketrans(dict.fromkeys(string.punctuation + "‘’´`", " "))
_KORQUAD_SPACES = str.maketrans(dict.fromkeys("'\"《》<>〈〉()‘’", " "))


def squad_words(text: str) -> list[str]:
    """The words of an answer, lower-cased, without punctuation and English articles.

    Example:
        >>> squad_words("The  U.S. Army")
        ['us', 'army']
    """
    return _ARTICLES.sub(" ", text.lower().translate(_REMOVED)).split()


def trivia_words(text: str) -> list[str]:
    """As `squad_words`, but punctuation separates words.

    Example:
        >>> trivia_words("The U.S._Army")
        ['u', 's', 'army']
    """
    return _ARTICLES.sub(" ", text.lower().translate(_TRIVIA_SPACES)).split()


def korquad_words(text: str) -> list[str]:
    """The words of an answer, lower-cased; brackets and quotes separate words, other signs go.

    Example:
        >>> korquad_words("《무정》(1917년), 이광수")
        ['무정', '1917년', '이광수']
    """
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
    guessed = words(prediction)
    exact, best = 0.0, 0.0
    for answer in answers:
        right = words(answer)
        exact = max(exact, float(guessed == right))
        best = max(best, f1(guessed, right))
    return Scores(exact, best)


def best_threshold(
    scores: Mapping[str, float],
    predictions: Mapping[str, str],
    null_odds: Mapping[str, float],
    has_answer: Mapping[str, bool],
) -> tuple[float, float]:
    """The highest score and its threshold, as the official script of SQuAD 2.0 finds them."""
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


def span_scores(
    predictions: Predictions, answers: Answers, score: Callable[[str, Any], Scores]
) -> dict[str, float]:
    """`exact_match` and `f1` by one prediction's; a question without one counts as wrong."""
    return _exact_match_and_f1(_scored(predictions, answers, score), len(answers))


def squad_v1_question(prediction: str, answers: Iterable[str]) -> Scores:
    """The scores of one prediction by the rules of SQuAD 1.1."""
    return best_scores(prediction, answers, squad_words)


def korquad_question(prediction: str, answers: Iterable[str]) -> Scores:
    """The scores of one prediction by the rules of KorQuAD 1.0, whose F1 counts characters."""
    return best_scores(prediction, answers, korquad_words, _characters_f1)


def trivia_scores(
    predictions: Predictions, answers: Mapping[str, Mapping[str, Any]]
) -> dict[str, float]:
    """The figures of TriviaQA and their counts; a question without a prediction counts as wrong."""

    def score(prediction: str, answer: Mapping[str, Any]) -> Scores:
        human = [" ".join(trivia_words(text)) for text in answer.get("HumanAnswers", [])]
        return best_scores(prediction, [*answer["NormalizedAliases"], *human], trivia_words)

    scored = _scored(predictions, answers, score)
    return {
        **_exact_match_and_f1(scored, len(answers)),
        "common": len(scored),
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
    has_answer = {identifier: bool(texts) for identifier, texts in answers.items()}
    if null_odds is None:
        return _by_answerability(before, has_answer)
    _check_complete(answers, null_odds, "null odds")
    after = {
        identifier: Scores(*[float(not has_answer[identifier])] * 2)
        if null_odds[identifier] > threshold
        else score
        for identifier, score in before.items()
    }
    figures = _by_answerability(after, has_answer)
    for name in Scores._fields:
        values = {identifier: operator.attrgetter(name)(x) for identifier, x in before.items()}
        best, at = best_threshold(values, predictions, null_odds, has_answer)
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


def _characters_f1(prediction: list[str], answer: list[str]) -> float:
    return shared_f1("".join(prediction), "".join(answer))


def _by_answerability(
    scored: Mapping[str, Scores], has_answer: Mapping[str, bool]
) -> dict[str, float]:
    figures = _exact_f1_total(list(scored.values()))
    for prefix, wanted in (("HasAns_", True), ("NoAns_", False)):
        part = [score for identifier, score in scored.items() if has_answer[identifier] == wanted]
        if part:
            figures |= {prefix + name: x for name, x in _exact_f1_total(part).items()}
    return figures


def _exact_f1_total(scores: Sequence[Scores]) -> dict[str, float]:
    exact, f1 = _sums(scores)
    total = len(scores)
    return {"exact": 100.0 * exact / total, "f1": 100.0 * f1 / total, "total": total}


def _exact_match_and_f1(scored: Mapping[str, Scores], total: int) -> dict[str, float]:
    exact, f1 = _sums(scored.values())
    return {"exact_match": 100.0 * exact / total, "f1": 100.0 * f1 / total}


def _sums(scores: Iterable[Scores]) -> tuple[float, float]:
    """Both sums, added from the left: `sum` is more exact in newer versions of Python."""
    scores = list(scores)
    exact = reduce(operator.add, [score.exact for score in scores], 0.0)
    return exact, reduce(operator.add, [score.f1 for score in scores], 0.0)


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
