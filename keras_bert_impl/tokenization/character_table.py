"""The facts about every character that BERT's rules ask for, in one fixed version of Unicode.

`unicode_14.npz` in this folder was made from the `unicodedata` of Python 3.11 (Unicode 14.0.0).
The fast tokenizer reads only this table, so that its tokens do not change with the Python that runs
it. To move to a newer Unicode, run `CharacterTable.of_running_python().save(PINNED_FILE)` with that
Python; tokens of characters that Unicode has changed or added in between will differ.
"""

import os
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keras_bert_impl.tokenization import reference

CODE_POINTS = 0x110000
PINNED_FILE = Path(__file__).parent / "unicode_14.npz"

# One bit for each fact; the facts are those that the rules in reference.py ask for.
ASSIGNED, DROPPED, PUNCTUATION, ACCENT = 1, 2, 4, 8
CASED, CASE_IGNORABLE = 16, 32  # as `str.lower` sees a capital sigma's neighbor
SIGMA = "Σ"
SURROGATES = range(0xD800, 0xE000)
HANGUL = range(0xAC00, 0xD7A4)


@dataclass(frozen=True, eq=False)
class CharacterTable:
    """The facts about all code points.

    Attributes:
        unicode_version: the version of Unicode that the facts are from.
        facts: a bit for each fact, uint8 [0x110000].
        lower_case: the lower-case form of a character that has one and is not `Σ`, whose form
            depends on its neighbors.
        decomposition: the canonical decomposition (NFD) of a character that has one and is not a
            Hangul syllable.
        reordered: the combining class of a mark that NFD moves and that is not an accent (Mn).

    Example:
        >>> table = CharacterTable.load()
        >>> table.unicode_version, bool(table.facts[ord("!")] & PUNCTUATION)
        ('14.0.0', True)
        >>> table.lower_case["É"], len(table.decomposition["é"])
        ('é', 2)
    """

    unicode_version: str
    facts: np.ndarray
    lower_case: Mapping[str, str]
    decomposition: Mapping[str, str]
    reordered: Mapping[str, int]

    @classmethod
    def of_running_python(cls) -> "CharacterTable":
        """Asks the `unicodedata` and the `str.lower` of the running Python."""
        facts = np.zeros(CODE_POINTS, np.uint8)
        lower_case, decomposition, reordered = {}, {}, {}
        for number in range(CODE_POINTS):
            if number in SURROGATES:
                continue
            character = chr(number)
            category = unicodedata.category(character)
            facts[number] = _facts(character, category)
            lower = character.lower()
            if lower != character and character != SIGMA:
                lower_case[character] = lower
            decomposed = unicodedata.normalize("NFD", character)
            if decomposed != character and number not in HANGUL:
                decomposition[character] = decomposed
            if category != "Mn" and unicodedata.combining(character):
                reordered[character] = unicodedata.combining(character)
        return cls(unicodedata.unidata_version, facts, lower_case, decomposition, reordered)

    @classmethod
    def load(cls, path: str | os.PathLike[str] = PINNED_FILE) -> "CharacterTable":
        """Reads a table that `save` wrote; by default the pinned one."""
        with np.load(path) as file:
            facts = np.repeat(file["run_facts"], np.diff(file["run_starts"], append=CODE_POINTS))
            return cls(
                unicode_version=str(file["unicode_version"]),
                facts=facts,
                lower_case=_unpack(file["lower_case"]),
                decomposition=_unpack(file["decomposition"]),
                reordered={chr(number): int(order) for number, order in file["reordered"]},
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the table in compact form: runs of equal facts, and the two mappings."""
        changes = np.flatnonzero(np.diff(self.facts)) + 1
        starts = np.concatenate([[0], changes]).astype(np.int32)
        np.savez_compressed(
            path,
            unicode_version=np.array(self.unicode_version),
            run_starts=starts,
            run_facts=self.facts[starts],
            lower_case=_pack(self.lower_case),
            decomposition=_pack(self.decomposition),
            reordered=np.array([(ord(c), order) for c, order in self.reordered.items()], np.int32),
        )

    def characters(self, fact: int) -> str:
        """All characters with a fact, in order."""
        return "".join(map(chr, np.flatnonzero(self.facts & fact)))

    def has(self, character: str, fact: int) -> bool:
        """Whether a character has a fact."""
        return bool(self.facts[ord(character)] & fact)

    def decompose(self, text: str) -> str:
        """Decomposes each character (NFD without the reordering of marks)."""
        return "".join(self._decompose(character) for character in text)

    def _decompose(self, character: str) -> str:
        # Unicode composes Hangul by a formula: 19 x 21 x 28 syllables need no table.
        syllable = ord(character) - HANGUL.start
        if 0 <= syllable < len(HANGUL):
            lead, vowel, tail = syllable // 588, syllable % 588 // 28, syllable % 28
            jamo = (0x1100 + lead, 0x1161 + vowel, 0x11A7 + tail)
            return "".join(map(chr, jamo[: 3 if tail else 2]))
        return self.decomposition.get(character, character)


def character_class(chosen: np.ndarray) -> str:
    r"""A regular expression for one of some characters.

    Example:
        >>> print(character_class(np.isin(np.arange(CODE_POINTS), [0x61, 0x62, 0x10FFFF])))
        [\x{61}-\x{62}\x{10ffff}-\x{10ffff}]
    """
    borders = np.flatnonzero(np.diff(chosen != 0, prepend=False, append=False)).tolist()
    runs = zip(borders[::2], borders[1::2], strict=True)
    return "[" + "".join(rf"\x{{{first:x}}}-\x{{{after - 1:x}}}" for first, after in runs) + "]"


def differing_code_points(table: CharacterTable, other: CharacterTable) -> np.ndarray:
    """The code points about which two tables say different things, in order, int64 [n]."""
    differs = table.facts != other.facts
    for name in ("lower_case", "decomposition", "reordered"):
        ours, theirs = getattr(table, name), getattr(other, name)
        changed = (c for c in ours.keys() | theirs.keys() if ours.get(c) != theirs.get(c))
        differs[[ord(character) for character in changed]] = True
    return np.flatnonzero(differs)


def _facts(character: str, category: str) -> int:
    # `str.lower` writes a capital sigma as final where a cased character stands before it and none
    # after it; case-ignorable characters in between do not count.
    cased = (character + SIGMA).lower().endswith("ς")
    ignorable = not cased and f"A{character}{SIGMA}".lower().endswith("ς")
    return (
        ASSIGNED * (category != "Cn")
        | DROPPED * reference.is_dropped(character)
        | PUNCTUATION * reference.is_punctuation(character)
        | ACCENT * (category == "Mn")
        | CASED * cased
        | CASE_IGNORABLE * ignorable
    )


def _pack(mapping: Mapping[str, str]) -> np.ndarray:
    # Each key, of one character, with its value, closed by a zero: no value has a NUL.
    text = "".join(f"{key}{value}\0" for key, value in mapping.items())
    return np.frombuffer(text.encode("utf-32-le"), np.int32)


def _unpack(packed: np.ndarray) -> dict[str, str]:
    text = packed.astype("<i4").tobytes().decode("utf-32-le")
    return {entry[0]: entry[1:] for entry in text.split("\0")[:-1]}
