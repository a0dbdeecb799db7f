"""How two answers are compared: the words (or characters) that count, and how many they share.

Each data set has rules of its own for what counts, those of its official script: SQuAD's words,
TriviaQA's words, KorQuAD's characters.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

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
    """The F1 of two bags of words (or characters); 0 where they share none.

    Example:
        >>> shared_f1(["the", "red", "house"], ["red", "house"])
        0.8
    """
    common = sum((Counter(prediction) & Counter(answer)).values())
    if not common:
        return 0.0
    precision, recall = common / len(prediction), common / len(answer)
    return 2 * precision * recall / (precision + recall)


class Scores(NamedTuple):
    """How good one prediction is: the best over its question's answers.

    Attributes:
        exact: 1.0 where it equals an answer, as the data set's rules see it; otherwise 0.0.
        f1: the F1 of what it shares with an answer.
    """

    exact: float
    f1: float


def best_scores(
    prediction: str,
    answers: Iterable[str],
    words: Callable[[str], list[str]],
    f1: Callable[[list[str], list[str]], float] = shared_f1,
) -> Scores:
    """Compares a prediction with every answer of its question.

    Args:
        answers: the right answers; without any, both scores are 0.

    Example:
        >>> best_scores("the red house", ["house", "Red house."], squad_words)
        Scores(exact=1.0, f1=1.0)
    """
    guessed = words(prediction)
    exact, best = 0.0, 0.0
    for answer in answers:
        right = words(answer)
        exact = max(exact, float(guessed == right))
        best = max(best, f1(guessed, right))
    return Scores(exact, best)
