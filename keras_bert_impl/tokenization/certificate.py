"""A comparison of the tokenizer's ids with the plain reference's, line by line."""

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from keras_bert_impl.tokenization import reference
from keras_bert_impl.tokenization.character_table import CharacterTable, differing_code_points
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer

_SHOWN_DIFFERENCES = 10
_REMEMBERED = 1_000_000
_LINES_AT_ONCE = 1024


class RememberingReference:
    """The reference, with what it did to the text between two spaces kept for the next time.

    Nothing in the rules looks across a space, so a line's ids are those of its parts in a row.
    """

    def __init__(self, settings: TextSettings) -> None:
        self._vocabulary = settings.vocabulary
        self._options = settings.do_lower_case, settings.removes_accents
        self._remembered: dict[str, list[int]] = {}

    def encode(self, line: str | bytes) -> list[int]:
        """The ids of a line."""
        ids: list[int] = []
        remembered = self._remembered
        for part in reference.as_text(line).split(" "):
            known = remembered.get(part)
            ids += self._encode_part(part) if known is None else known
        return ids

    def _encode_part(self, part: str) -> list[int]:
        tokens = reference.tokenize(part, self._vocabulary, *self._options)
        ids = [self._vocabulary.id_of(token) for token in tokens]
        if len(self._remembered) < _REMEMBERED:  # a text of any length needs bounded memory
            self._remembered[part] = ids
        return ids


@dataclass
class Comparison:
    """How many lines were compared, how many differ, and the first of those.

    `left_out` counts the lines with characters about which the running Python says otherwise than
    the pinned Unicode version, which the reference can therefore not judge.
    """

    compared: int = 0
    differing: int = 0
    left_out: int = 0
    first_differences: list[dict[str, Any]] = field(default_factory=list)


def certify_lines(tokenizer: Tokenizer, lines: Iterable[str | bytes]) -> Comparison:
    """Compares the tokenizer with the reference, line by line."""
    expected, result, source = RememberingReference(tokenizer.settings), Comparison(), iter(lines)
    drifted = {chr(number) for number in drifted_code_points()}
    while batch := list(islice(source, _LINES_AT_ONCE)):
        kept = [line for line in batch if drifted.isdisjoint(reference.as_text(line))]
        result.left_out += len(batch) - len(kept)
        result.compared += len(kept)
        block = tokenizer.encode_lines(kept)
        ids, borders = block.ids.tolist(), block.offsets.tolist()
        for number, line in enumerate(kept):
            found, wanted = ids[borders[number] : borders[number + 1]], expected.encode(line)
            if found == wanted:
                continue
            result.differing += 1
            if len(result.first_differences) < _SHOWN_DIFFERENCES:
                said = {"line": reference.as_text(line), "ids": found, "reference_ids": wanted}
                result.first_differences.append(said)
    return result


def code_point_lines() -> Iterator[str]:
    """Every code point but the surrogates, between letters: "a?b c"."""
    # Letters on both sides show whether it splits, joins or vanishes; the space, whether that
    # reaches into the next word.
    for number in range(0x110000):
        if not 0xD800 <= number < 0xE000:
            yield f"a{chr(number)}b c"


def drifted_code_points() -> np.ndarray:
    """The code points that the running Python sees otherwise than the pinned Unicode version."""
    pinned = CharacterTable.load()
    if unicodedata.unidata_version == pinned.unicode_version:
        return np.zeros(0, np.int64)
    return differing_code_points(pinned, CharacterTable.of_running_python())
