"""A question and the passage that answers it, with the words that the original sees in it."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_BLANKS = " \t\r\n\u202f"
_IS_BLANK = np.isin(np.arange(max(map(ord, _BLANKS)) + 2), [ord(blank) for blank in _BLANKS])
_WORDS = re.compile(f"[^{_BLANKS}]+")
_OTHER_BLANKS = "\x0b\x0c\x1c\x1d\x1e\x1f"  # those of ASCII that only Python cuts at


@dataclass(frozen=True, eq=False)
class Passage:
    r"""A text in which answers are looked for.

    A word is what stands between two of the original's blanks: space, tab, carriage return, line
    feed and the narrow no-break space (not the no-break space).

    Example:
        >>> passage = Passage("Rain", " It  rained.\n")
        >>> passage.words, passage.word_of_character.tolist()
        (['It', 'rained.'], [-1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1])
    """

    article: str
    text: str

    @cached_property
    def words(self) -> list[str]:
        """The words."""
        if self.text.isascii() and not any(blank in self.text for blank in _OTHER_BLANKS):
            return self.text.split()  # several times as fast
        return _WORDS.findall(self.text)

    @cached_property
    def word_of_character(self) -> NDArray[np.int32]:
        """The word that each character is of; a blank is of the word in front of it, or -1."""
        if self.text.isascii():
            blank = _IS_BLANK[np.frombuffer(self.text.encode(), np.uint8)]
        else:  # a JSON file may hold half of a surrogate pair
            codes = np.frombuffer(self.text.encode("utf-32-le", "surrogatepass"), "<u4")
            blank = _IS_BLANK[np.minimum(codes, len(_IS_BLANK) - 1)]
        begins = ~blank
        begins[1:] &= blank[:-1]
        return np.cumsum(begins, dtype=np.int32) - 1


class PlacedText(NamedTuple):
    """An answer as a file has it."""

    text: str
    start: int


class WordSpan(NamedTuple):
    """The first and the last word of an answer."""

    first: int
    last: int


def find_words(passage: Passage, answer: PlacedText) -> WordSpan | None:
    """Finds the words of a passage that an answer is in.

    Returns:
        None where the answer does not stand where it is said to, as the original decides it: words
        are compared with single blanks between them.

    Example:
        >>> find_words(Passage("Rain", "It rained all day."), PlacedText("rain", 3))
        WordSpan(first=1, last=1)
        >>> find_words(Passage("Rain", "It rained all day."), PlacedText("snow", 3))
    """
    word_of, end = passage.word_of_character, answer.start + len(answer.text)
    wanted = " ".join(answer.text.split())
    if not (wanted and answer.start >= 0 and end <= len(word_of)):
        return None
    first, last = int(word_of[answer.start]), int(word_of[end - 1])
    if wanted not in " ".join(passage.words[first : last + 1]):
        return None
    return WordSpan(max(first, 0), last)


@dataclass(frozen=True)
class Question:
    """A question about a passage.

    Example:
        >>> passage = Passage("Rain", "It rained all day.")
        >>> Question("q1", "How long?", passage, (PlacedText("all day", 10),)).answer_words
        WordSpan(first=2, last=3)
    """

    identifier: str
    text: str
    passage: Passage
    answers: tuple[PlacedText, ...] = ()
    is_impossible: bool = False

    @cached_property
    def answer_words(self) -> WordSpan | None:
        """The words of the first answer; None where there is none, or not where it should be."""
        if self.is_impossible or not self.answers:
            return None
        return find_words(self.passage, self.answers[0])
