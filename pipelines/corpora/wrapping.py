"""Tells text whose lines are cut at one width, as mails, man pages and old books are, and joins it.

In wrapped prose nearly all lines end in the middle of a sentence and near that width. In a poem, in
a list, and where each line is a paragraph or a sentence, few do both.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

_SAMPLE_LINES, _FEWEST = 500, 3
# Near the width is less than so many columns; or so near that the next word had no room, of which
# only the beginning counts: in Thai, which has no blanks, a word may be a sentence.
_RAGGED, _LONGEST_WORD = 15, 10
# The shares of lines that prove it, and the least widths: wider lists and verses are rare.
_FULL, _NARROWEST = 0.4, 40
_NEAR, _WIDE, _WIDEST = 0.6, 60, 250
_LEAD = re.compile(r"((?:\s*>)*)(\s*)((?:[-*•]|\(?(?:\d{1,3}|[A-Za-z])[.)])\s+)?")
_ENDS_SENTENCE = re.compile(r"[.!?:…。！？।॥۔؟][\"'”’»)\]」』]*$")
_ENDS_IN_HYPHEN = re.compile(r"\w(?:-|--|‐|—)$")


class _Line(NamedTuple):
    """A line: how deep a mail quotes it, its words, and where they begin (`inner`: in a list)."""

    text: str
    quoted: int
    body: str
    start: int
    inner: int

    @property
    def word(self) -> str:
        """The first word, or as much as stands together where a script has no blanks."""
        return self.body[:2] if _has_no_blanks(self.body[0]) else self.body.split(maxsplit=1)[0]


def find_width(lines: Iterable[str | None]) -> int | None:
    """The width at which the lines of a text are cut; None where they are paragraphs or sentences.

    Args:
        lines: of which the first ones are looked at; an empty one or None ends a paragraph.

    Example:
        >>> import textwrap
        >>> text = "The quick brown fox jumps over the lazy dog, and the dog sleeps on. " * 9
        >>> find_width(textwrap.wrap(text, 60)), find_width([text] * 9)
        (59, None)
    """
    sample = [_parsed((line or "")[: 2 * _WIDEST]) for line in islice(lines, _SAMPLE_LINES)]
    pairs = [(a, b) for a, b in pairwise(sample) if a and b and _may_continue(a, b)]
    if len(pairs) < _FEWEST:
        return None
    # The narrowest width that the most lines nearly reach.
    counts = np.bincount([columns(line.text) for line, _ in pairs])[: _WIDEST + 1]
    width = int(np.argmax(np.convolve(counts, np.ones(_RAGGED))))
    cut = [(width - columns(a.text), b.word[:_LONGEST_WORD]) for a, b in pairs if _runs_on(a, b)]
    full = sum(0 <= left <= columns(word) for left, word in cut) * (width >= _NARROWEST)
    near = sum(0 <= left < _RAGGED for left, _ in cut) * (width >= _WIDE)
    return width if max(full / _FULL, near / _NEAR) >= len(pairs) else None


def join_lines(lines: Iterable[str | None], width: int | None) -> Iterator[str | None]:
    """The paragraphs that lines cut at a width are parts of; None ends a document.

    Args:
        width: of `find_width`; 0 joins all lines up to an empty one, and None none.

    Example:
        >>> list(join_lines(["> A well-", "> known one", "", "- two", "  lines"], 0))
        ['> A well-known one', '- two lines']
    """
    if width is None:
        yield from (line for line in lines if line is None or line.strip())
        return
    paragraph, last = "", None
    for text in lines:
        line = _parsed(text)
        if last and line and _goes_on(last, line, width):
            paragraph += f"{_between(paragraph, line.body)}{line.body}"
        else:
            if last:
                yield paragraph
            paragraph = line.text if line else ""
        if text is None:
            yield None
        last = line
    if last:
        yield paragraph


def _parsed(text: str | None) -> _Line | None:
    """A line; None where there is none, or an empty one, which may be quoted."""
    text = (text or "").expandtabs().rstrip()
    quotes, blanks, mark = _LEAD.match(text).groups("")  # type: ignore[union-attr]
    start = len(quotes) + len(blanks)
    line = _Line(text, quotes.count(">"), text[start:], start, start + len(mark))
    return line if line.body else None


def _may_continue(line: _Line, following: _Line) -> bool:
    """Whether only the words can tell that a paragraph ends between two lines."""
    # What an option of a man page means begins behind a gap, and goes on below its beginning.
    hangs = line.text[: following.start].endswith("  ") and len(line.text) > following.start
    return line.quoted == following.quoted and (following.start <= line.inner or hangs)


def _goes_on(line: _Line, following: _Line, width: int) -> bool:
    """Whether two lines are of one paragraph, where lines are cut."""
    # Whoever breaks lines by hand breaks some far too early.
    early = following.body[0].islower() and _runs_on(line, following)
    left = width - columns(line.text)
    full = width == 0 or -_RAGGED < left < _RAGGED or 0 <= left <= columns(following.word)
    return _may_continue(line, following) and (early or full)


def _runs_on(line: _Line, following: _Line) -> bool:
    """Whether no sentence ends with a line, and none seems to begin with the next one."""
    first = next(filter(str.isalnum, following.body), "")
    return not (_ENDS_SENTENCE.search(line.text) or first.isupper() or first.isdigit())


def _between(before: str, after: str) -> str:
    """What stands between two parts of a paragraph: a blank, where the script has any."""
    unparted = _has_no_blanks(before[-1]) and _has_no_blanks(after[0])
    return "" if unparted or _ENDS_IN_HYPHEN.search(before) else " "


def columns(text: str) -> int:
    """The columns that a text takes; Hangul and other wide characters take two each.

    Example:
        >>> columns("a 배")
        4
    """
    wide = () if text.isascii() else map(unicodedata.east_asian_width, text)
    return len(text) + sum(one in "WF" for one in wide)


def _has_no_blanks(character: str) -> bool:
    """Whether a character is of a script that parts no words: Chinese or Japanese, not Korean."""
    return columns(character) == 2 and not "가" <= character <= "힣"
