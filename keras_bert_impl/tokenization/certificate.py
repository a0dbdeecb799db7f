"""A comparison of the tokenizer's ids with the plain reference's, line by line."""

import functools
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from keras_bert_impl.tokenization import reference
from keras_bert_impl.tokenization.character_table import CharacterTable, differing_code_points
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer

_SHOWN, _AT_ONCE = 10, 1024


class RememberingReference:
    """The reference, with what it did to the text between two spaces kept for the next time.

    Nothing in the rules looks across a space, so a line's ids are those of its parts in a row.
    """

    def __init__(self, settings: TextSettings) -> None:
        vocabulary = settings.vocabulary
        rules = settings.do_lower_case, settings.removes_accents, settings.longest_word

        @functools.lru_cache(1_000_000)
        def encode(part: str) -> list[int]:
            return [vocabulary.id_of(one) for one in reference.tokenize(part, vocabulary, *rules)]

        self._encode = encode

    def encode(self, line: str | bytes) -> list[int]:
        """The ids of a line."""
        parts = reference.as_text(line).split(" ")
        return [number for part in parts for number in self._encode(part)]


@dataclass
class Comparison:
    """How many lines were compared, how many differ, and the first of those."""

    compared: int = 0
    differing: int = 0
    left_out: int = 0
    first_differences: list[dict[str, Any]] = field(default_factory=list)


def certify_lines(tokenizer: Tokenizer, lines: Iterable[str | bytes]) -> Comparison:
    """Compares the tokenizer with the reference, line by line."""
    expected, result, source = RememberingReference(tokenizer.settings), Comparison(), iter(lines)
    drifted = drifted_characters()
    while batch := list(islice(source, _AT_ONCE)):
        kept = [line for line in batch if drifted.isdisjoint(reference.as_text(line))]
        result.left_out += len(batch) - len(kept)
        result.compared += len(kept)
        block = tokenizer.encode_lines(kept)
        ids, borders = block.ids.tolist(), block.offsets.tolist()
        for number, line in enumerate(kept):
            found, wanted = ids[borders[number] : borders[number + 1]], expected.encode(line)
            if found != wanted:
                result.differing += 1
                said = {"line": reference.as_text(line), "ids": found, "reference_ids": wanted}
                result.first_differences += [said] if result.differing <= _SHOWN else []
    return result


def code_point_lines() -> Iterator[str]:
    """Every code point but the surrogates, between letters: "a?b c"."""
    # Letters on both sides show whether it splits, joins or vanishes; the space, whether that
    # reaches into the next word.
    for number in range(0x110000):
        if not 0xD800 <= number < 0xE000:
            yield f"a{chr(number)}b c"


def drifted_characters() -> set[str]:
    """The characters that the running Python sees otherwise than the pinned Unicode version."""
    pinned = CharacterTable.load()
    if unicodedata.unidata_version == pinned.unicode_version:
        return set()
    return set(map(chr, differing_code_points(pinned, CharacterTable.of_running_python())))
