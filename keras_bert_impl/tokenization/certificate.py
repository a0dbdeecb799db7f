"""A certificate that a tokenizer cuts text as the reference does: anybody can make it again."""

import platform
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
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

    Example:
        >>> from keras_bert_impl.tokenization.vocabulary import Vocabulary
        >>> vocabulary = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "##s"])
        >>> RememberingReference(TextSettings(vocabulary)).encode("The thes")
        [5, 5, 6]
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

    Attributes:
        compared: the number of lines compared.
        differing: how many of them gave other ids than the reference.
        left_out: lines with characters about which the running Python says otherwise than the
            pinned Unicode version, which the reference can therefore not judge.
        first_differences: line, ids and the reference's ids of the first lines that differ.
    """

    compared: int = 0
    differing: int = 0
    left_out: int = 0
    first_differences: list[dict[str, Any]] = field(default_factory=list)


def certify_lines(tokenizer: Tokenizer, lines: Iterable[str | bytes]) -> Comparison:
    """Compares the tokenizer with the reference, line by line.

    Example:
        >>> from keras_bert_impl.tokenization.vocabulary import Vocabulary
        >>> tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "word", "##s", "."]
        >>> tokenizer = Tokenizer(TextSettings(Vocabulary(tokens)))
        >>> certify_lines(tokenizer, ["The words.", "Others"])
        Comparison(compared=2, differing=0, left_out=0, first_differences=[])
    """
    expected = RememberingReference(tokenizer.settings)
    drifted = {chr(number) for number in drifted_code_points()}
    result = Comparison()
    for batch in _batches(lines):
        if drifted:
            kept = [line for line in batch if drifted.isdisjoint(reference.as_text(line))]
            result.left_out += len(batch) - len(kept)
            batch = kept  # noqa: PLW2901
        block = tokenizer.encode_lines(batch)
        wanted = [expected.encode(line) for line in batch]
        result.compared += len(batch)
        _count_differences(result, batch, block.ids, block.offsets, wanted)
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


def certificate(
    tokenizer: Tokenizer, code_points: Comparison | None, lines: Comparison | None
) -> dict[str, Any]:
    """The result of comparisons and what was compared, ready for JSON.

    Args:
        tokenizer: the tokenizer that was compared.
        code_points: the result of `certify_lines` for `code_point_lines()`, if that was asked.
        lines: its result for text, if that was asked.
    """
    compared = [comparison for comparison in (code_points, lines) if comparison is not None]
    return {
        "exact": not any(comparison.differing for comparison in compared),
        "code_points": None if code_points is None else asdict(code_points),
        "lines": None if lines is None else asdict(lines),
        "do_lower_case": tokenizer.settings.do_lower_case,
        "strip_accents": tokenizer.settings.removes_accents,
        "vocabulary_size": len(tokenizer.vocabulary),
        "vocabulary_sha256": tokenizer.vocabulary.sha256,
        "unicode_version": CharacterTable.load().unicode_version,
        "versions": {
            "python": platform.python_version(),
            "tensorflow": version("tensorflow"),
            "tensorflow-text": version("tensorflow-text"),
        },
    }


def _count_differences(
    result: Comparison,
    lines: list[str | bytes],
    ids: np.ndarray,
    offsets: np.ndarray,
    wanted: list[list[int]],
) -> None:
    wanted_offsets = np.cumsum([0, *map(len, wanted)])
    wanted_ids = np.array([number for line in wanted for number in line], np.int32)
    # Nearly always all lines agree: one look at the batch says so.
    if np.array_equal(offsets, wanted_offsets) and np.array_equal(ids, wanted_ids):
        return
    for number, line in enumerate(lines):
        found = ids[offsets[number] : offsets[number + 1]].tolist()
        if found == wanted[number]:
            continue
        result.differing += 1
        if len(result.first_differences) < _SHOWN_DIFFERENCES:
            result.first_differences.append(
                {"line": reference.as_text(line), "ids": found, "reference_ids": wanted[number]}
            )


def _batches(lines: Iterable[str | bytes]) -> Iterator[list[str | bytes]]:
    batch: list[str | bytes] = []
    for line in lines:
        batch.append(line)
        if len(batch) == _LINES_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch
