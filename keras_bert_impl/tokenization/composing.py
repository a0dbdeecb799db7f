"""Composed text (Unicode's NFC): characters that stand in pieces become one where there is one.

Text is composed unit by unit: a unit is a character with all behind it that may become one with it
or change places. What becomes of a unit came from where the unit begins; the characters of one that
stays as it is keep their places. A space is a unit by itself, where lines are cut.
"""

import functools
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

import numpy as np

_FORM: Any = "NFC"


def composed(text: str) -> str:
    r"""The text composed.

    Example:
        >>> composed("e\u0301")
        'é'
    """
    return unicodedata.normalize(_FORM, text)


def composed_places(text: str) -> Iterator[tuple[str, int]]:
    r"""The characters of a composed text, and where in the text each came from.

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
    numbers = np.array(sorted(found))
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
    return "".join(f"{chr(run[0])}-{chr(run[-1])}" for run in runs)
