"""BERT's tokenization rules as plainly as they can be said: slow, obvious, the measure of the rest.

The rules, in order (those of google-research/bert):

1. Bytes that are not UTF-8 are dropped. Half of a surrogate pair, which a `str` may have and no
   vocabulary does, stays, so that its word is "[UNK]".
2. NUL, U+FFFD and control and format characters (Cc, Cf) are dropped, except tab, line feed and
   carriage return; these three and space separators (Zs) become spaces.
3. Spaces go around every Chinese character.
4. The text is split at white space into words; each word is lower-cased, decomposed (NFD) and
   loses its accents (Mn), where asked for.
5. Every punctuation character becomes a word of its own: category P and the ASCII symbols.
6. Each word is cut, greedily from the left, into the longest tokens of the vocabulary; tokens after
   the first carry "##". A word that cannot be cut, or of more than 200 characters, is "[UNK]".

What a character is comes from the `unicodedata` of the running Python. `character_table.py` has the
same facts for one fixed version of Unicode.
"""

import functools
import re
import unicodedata
from collections.abc import Callable, Container, Iterator
from typing import TypeVar

import numpy as np

from keras_bert_impl.tokenization.vocabulary import CONTINUATION, MAX_CHARACTERS_PER_WORD

UNKNOWN_HALF = "\ufdd0"
"""Stands for half of a surrogate pair, which JSON may bring along: as long in UTF-8, and as unknown
to every vocabulary, because Unicode keeps it free of any meaning."""
_HALF = re.compile("[\ud800-\udfff]")

CHINESE = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)


def is_chinese(character: str) -> bool:
    """Whether a character is in one of the CJK ideograph blocks that BERT knows."""
    number = ord(character)
    return number >= CHINESE[0][0] and any(first <= number <= last for first, last in CHINESE)


def is_dropped(character: str) -> bool:
    """Whether a character vanishes before anything else happens."""
    if character in "\t\n\r":  # control characters (Cc) for Unicode, white space for BERT
        return False
    return character in "\0\ufffd" or unicodedata.category(character) in ("Cc", "Cf")


def is_white_space(character: str) -> bool:
    """Whether a character separates words."""
    return character in " \t\n\r" or unicodedata.category(character) == "Zs"


def is_punctuation(character: str) -> bool:
    """Whether a character is always a word of its own; ASCII symbols such as `$` count as well."""
    # Unicode has "$", "+", "^" and others as symbols (S), not as punctuation (P).
    ascii_symbol = "!" <= character <= "~" and not character.isalnum()
    return ascii_symbol or unicodedata.category(character).startswith("P")


def as_text(line: str | bytes) -> str:
    r"""A line as text that any file can hold.

    Bytes that are not UTF-8 are dropped; half of a surrogate pair becomes `UNKNOWN_HALF`.

    Example:
        >>> as_text(b"caf\xc3\xa9 \xff!"), as_text("a\ud800b") == f"a{UNKNOWN_HALF}b"
        ('café !', True)
    """
    if isinstance(line, bytes):
        return line.decode("utf-8", "ignore")
    return _HALF.sub(UNKNOWN_HALF, line)


def as_name(text: str) -> str:
    """A name of a label or a column as it is compared and kept: composed (Unicode's NFC).

    What looks the same is then the same, whatever wrote it: some systems write "é" as two.
    """
    return composed(text)


def without_accents(text: str) -> str:
    """A text decomposed (NFD) and without its accents (Mn)."""
    decomposed = unicodedata.normalize("NFD", text)
    return "".join(c for c in decomposed if unicodedata.category(c) != "Mn")


def split_words(
    line: str | bytes, do_lower_case: bool = True, strip_accents: bool | None = None
) -> list[str]:
    """Splits a line into the words that WordPiece then cuts (rules 1 to 5).

    Example:
        >>> split_words("Déjà-vu in 東京!")
        ['deja', '-', 'vu', 'in', '東', '京', '!']
        >>> split_words("Déjà", do_lower_case=True, strip_accents=False)
        ['déjà']
    """
    kept = (c for c in as_text(line) if not is_dropped(c))
    spaced = (" " if is_white_space(c) else f" {c} " if is_chinese(c) else c for c in kept)
    # `split` without an argument cuts at other characters, too (U+2028): the original does so.
    words = []
    for word in "".join(spaced).split():
        if do_lower_case:
            word = word.lower()  # noqa: PLW2901  each rule works on what the last one left
        # After lower-casing, as in the original: it can make an accent, as of "İ".
        if do_lower_case if strip_accents is None else strip_accents:
            word = without_accents(word)  # noqa: PLW2901
        words += "".join(f" {c} " if is_punctuation(c) else c for c in word).split()
    return words


def split_tokens(
    word: str, vocabulary: Container[str], longest: int = MAX_CHARACTERS_PER_WORD
) -> list[str]:
    """Cuts a word greedily into the longest tokens of the vocabulary (rule 6).

    Example:
        >>> split_tokens("unaffable", {"un", "##aff", "##able", "##a"})
        ['un', '##aff', '##able']
        >>> split_tokens("unaffordable", {"un", "##aff", "##able"})
        ['[UNK]']
    """
    tokens = longest_tokens(word, vocabulary) if len(word) <= longest else None
    return ["[UNK]"] if tokens is None else tokens


def tokenize(
    line: str | bytes,
    vocabulary: Container[str],
    do_lower_case: bool = True,
    strip_accents: bool | None = None,
    longest: int = MAX_CHARACTERS_PER_WORD,
) -> list[str]:
    """Cuts a line into tokens (rules 1 to 6).

    Example:
        >>> tokenize("The words.", {"the", "word", "##s", "."})
        ['the', 'word', '##s', '.']
    """
    words = split_words(line, do_lower_case, strip_accents)
    return [token for word in words for token in split_tokens(word, vocabulary, longest)]


T = TypeVar("T")


def longest_tokens(
    word: str, vocabulary: Container[str], *, continues: bool = False
) -> list[str] | None:
    """Cuts a word.

    Example:
        >>> longest_tokens("unaffable", {"un", "##aff", "##able", "##a"})
        ['un', '##aff', '##able']
        >>> longest_tokens("happy", {"happy", "##ha", "##ppy"}, continues=True)
        ['##ha', '##ppy']
        >>> longest_tokens("unaffordable", {"un", "##aff", "##able"}) is None
        True
    """
    find = lambda token: token if token in vocabulary else None  # noqa: E731
    return longest_matches(word, find, continues=continues)


def longest_matches(
    word: str,
    find: Callable[[str], T | None],
    *,
    continues: bool = False,
    longest: int | None = None,
) -> list[T] | None:
    """Cuts a word like `longest_tokens`, into the values that `find` has for the tokens: ids, say.

    Example:
        >>> longest_matches("unaffable", {"un": 1, "##aff": 2, "##able": 3}.get)
        [1, 2, 3]
    """
    found: list[T] = []
    prefix = CONTINUATION if continues else ""
    start, most = 0, longest or len(word)
    while start < len(word):
        for end in range(min(len(word), start + most), start, -1):
            match = find(prefix + word[start:end])
            if match is not None:
                break
        else:
            return None
        found.append(match)
        start, prefix = end, CONTINUATION
    return found


def composed(text: str) -> str:
    """The text composed."""
    return unicodedata.normalize("NFC", text)


def composed_places(text: str) -> Iterator[tuple[str, int]]:
    r"""The characters of a composed text, and where in the text each came from.

    Text is composed unit by unit: a unit is a character with all behind it that may become one with
    it or change places. What becomes of a unit came from where the unit begins; the characters of
    one that stays as it is keep their places. A space is a unit by itself, where lines are cut.

    Example:
        >>> list(composed_places("ae\u0301b"))
        [('a', 0), ('é', 1), ('b', 3)]
    """
    for unit in re.finditer(f"(?s) |.[{joining_characters()}]*", text):
        whole = composed(unit[0])
        moves = whole == unit[0]
        for number, character in enumerate(whole):
            yield character, unit.start() + number * moves


@functools.cache
def joining_characters() -> str:
    """The characters that belong to the unit before them, as ranges of a regular expression."""
    found = {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}  # parts of Hangul syllables
    for number in range(0x20000):  # there are none above
        parts = unicodedata.decomposition(chr(number)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            found.add(int(parts[1], 16))
        if unicodedata.combining(chr(number)):
            found.add(number)
    return character_ranges(np.array(sorted(found)))


def character_ranges(numbers: np.ndarray) -> str:
    """The inside of a class of a regular expression for some code points in rising order."""
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
    return "".join(f"{chr(run[0])}-{chr(run[-1])}" for run in runs)
