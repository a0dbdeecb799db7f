"""The model of the kernel that replaces characters, and the rules that it is made of.

That kernel (tensorflow-text's `FastWordpieceTokenizeWithOffsets`) splits text by itself at white
space, Chinese characters and what *its* ICU takes for punctuation. So most of BERT's rules come
down to a replacement for each character, which also makes up for where ICU differs.

The trie is an array of 32-bit units; unit 0 is the root. A unit holds a label (its byte), whether
a value hangs below it, and an offset: the child for byte b of the unit at position p stands at
`p ^ offset ^ b`, and p's value at `p ^ offset`. The position `p ^ offset` is p's base here. A
child is recognized by its label alone, so no two units may share a base.

The model is a flatbuffer with a trie over the UTF-8 of characters and a pool of replacements. Bytes
that are no UTF-8 reach the trie as they are, so that they can be dropped like characters.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain

import numpy as np

from keras_bert_impl.tokenization.character_table import (
    ACCENT,
    DROPPED,
    HANGUL,
    PUNCTUATION,
    SIGMA,
    CharacterTable,
)
from keras_bert_impl.tokenization.reference import is_chinese

_PRIVATE_USE = range(0xE000, 0xF900)
SIGMA_MARK = "§"


class CharacterRules:
    """The replacement of each character.

    Two things need names of their own in the replaced text:

    * A character at which the kernel splits and BERT does not (one that Unicode assigned after the
      pinned version) is written with a private-use character.
    * A capital sigma, whose lower-case form depends on its neighbors, is written as "§":
      a word of its own for the kernel, and as long in UTF-8 as the two forms. So a real "§" is
      written with a private-use character, too.

    Example:
        >>> rules = CharacterRules(CharacterTable.load(), True, True, set("!;§"), set("abc"))
        >>> rules.replacement("É"), rules.replacement("!"), rules.replacement("¿")
        ('e', '!', ' ¿ ')
    """

    def __init__(
        self,
        table: CharacterTable,
        do_lower_case: bool,
        strip_accents: bool,
        kernel_splits: Collection[str],
        in_vocabulary: Collection[str],
    ) -> None:
        self.table, self.do_lower_case, self.strip_accents = table, do_lower_case, strip_accents
        self._kernel_splits = kernel_splits
        private = (chr(number) for number in _PRIVATE_USE)
        unused = (character for character in private if character not in in_vocabulary)
        # One name serves for all characters that the vocabulary does not have: their words are
        # unknown in any case.
        self._unknown = next(unused)
        wrong = sorted(c for c in kernel_splits if not self.splits_at(c))
        names = {c: next(unused) if c in in_vocabulary else self._unknown for c in wrong}
        self.sigma_mark = SIGMA_MARK if do_lower_case else ""
        if do_lower_case:
            known = SIGMA_MARK in in_vocabulary
            names[SIGMA_MARK] = next(unused) if known else self._unknown
        # A character whose name was taken cannot stand for itself any more.
        self._names = names | dict.fromkeys(names.values(), self._unknown)

    def replacement(self, character: str) -> str:
        """The text that replaces a character; itself where it stays."""
        if self.table.has(character, DROPPED):
            return ""
        if self.do_lower_case and character == SIGMA:
            return self.sigma_mark
        text = self.table.lower_case.get(character, character) if self.do_lower_case else character
        if self.strip_accents:
            decomposed = self.table.decompose(text)
            text = "".join(c for c in decomposed if not self.table.has(c, ACCENT))
        return "".join(self._written(c, is_chinese(character) or self.splits_at(c)) for c in text)

    def rewrite_token(self, token: str) -> str:
        """A token of the vocabulary in the characters that replaced text is written in."""
        return "".join(self._names.get(character, character) for character in token)

    def changes(self) -> Iterator[tuple[str, str]]:
        """Every character that does not stay as it is, with its replacement, by code point."""
        table = self.table
        candidates = {SIGMA, *self._names, *table.characters(DROPPED | ACCENT | PUNCTUATION)}
        candidates |= table.lower_case.keys() | table.decomposition.keys()
        candidates |= {chr(number) for number in HANGUL}
        for character in sorted(candidates):
            replacement = self.replacement(character)
            if replacement != character:
                yield character, replacement

    def splits_at(self, character: str) -> bool:
        """Whether a character is always a word of its own."""
        return self.table.has(character, PUNCTUATION) or is_chinese(character)

    def _written(self, character: str, own_word: bool) -> str:
        name = self._names.get(character, character)
        if not own_word or name in self._kernel_splits or is_chinese(name):
            return name
        return f" {name} "


_BLOCK = 256
_VALUE_BELOW = 0x100
_IS_VALUE = 0x80000000
_MAX_DIRECT_OFFSET = 1 << 21
# A unit's children have labels from 0x80 on, as all but the first bytes of UTF-8: they never take
# the positions 1 to 0x7F of its block, which hold the values of other units.
_FREE_POSITIONS = range(1, 0x80)


def build_double_array(entries: Mapping[bytes, int]) -> np.ndarray:
    """Builds the trie of a value of 31 bits for each key.

    All bytes of a key but the first are at least 0x80, as in a character of UTF-8.
    """
    children: dict[bytes, set[int]] = {b"": set()}
    for key in entries:
        for end in range(1, len(key) + 1):
            children.setdefault(key[: end - 1], set()).add(key[end - 1])
    # The root's block comes second: its own unit stands at position 0.
    base = {prefix: _BLOCK * (number + 1) for number, prefix in enumerate(children)}
    free = (block + position for block in list(base.values())[1:] for position in _FREE_POSITIONS)
    extra = (_BLOCK * (len(base) + 1 + n // 127) + 1 + n % 127 for n in range(len(entries)))
    leaf_bases = chain(free, extra)

    positions = {b"": 0}
    for prefix, labels in children.items():
        positions |= {prefix + bytes([label]): base[prefix] ^ label for label in labels}
    units: dict[int, int] = {}
    for node, position in positions.items():
        node_base = base[node] if node in base else next(leaf_bases)
        offset = position ^ node_base
        if offset >= _MAX_DIRECT_OFFSET:
            raise ValueError(f"the trie has more than {_MAX_DIRECT_OFFSET} units")
        unit = offset << 10 | (node[-1] if node else 0)
        if node in entries:
            unit |= _VALUE_BELOW
            units[node_base] = entries[node] | _IS_VALUE
        units[position] = unit
    array = np.zeros((max(units) // _BLOCK + 1) * _BLOCK, np.uint32)
    array[list(units)] = np.fromiter(units.values(), np.uint32, len(units))
    return array


_CHANGED = 0x40000000  # the kernel's mark for "has a replacement"
_LENGTH_BITS = 6  # below it: the position in the pool, then the length in bytes
_MAX_LENGTH = (1 << _LENGTH_BITS) - 1


def build_normalizer_model(changes: Iterable[tuple[str, str]]) -> np.ndarray:
    """Builds the kernel's model, a flatbuffer, of characters' replacements (63 bytes at most).

    All other characters stay; NUL and bytes that are no UTF-8 are dropped.
    """
    # `_CHANGED` alone is "replaced by nothing": position and length are 0.
    entries = dict.fromkeys(_ill_formed(), _CHANGED)
    pool = bytearray()
    positions: dict[bytes, int] = {b"": 0}
    for character, replacement in changes:
        text = replacement.encode()
        if len(text) > _MAX_LENGTH:
            raise ValueError(f"the replacement of {character!r} has more than {_MAX_LENGTH} bytes")
        if text not in positions:
            positions[text] = len(pool)
            pool += text
        if character != "\0":  # a field of its own; see `_flatbuffer`
            entries[character.encode()] = _CHANGED | positions[text] << _LENGTH_BITS | len(text)
    return _flatbuffer(build_double_array(entries), bytes(pool) or b" ")


def _ill_formed() -> Iterator[bytes]:
    """The bytes and cut-off characters that ICU steps over as one unit."""
    # The ranges are those of well-formed UTF-8: after E0 no overlong form, after ED no surrogate,
    # after F4 nothing above U+10FFFF.
    yield from (bytes([byte]) for byte in range(0x80, 0x100))
    for lead in range(0xE0, 0xF0):
        trails = range(0xA0 if lead == 0xE0 else 0x80, 0xA0 if lead == 0xED else 0xC0)
        yield from (bytes([lead, trail]) for trail in trails)
    for lead in range(0xF0, 0xF5):
        for trail in range(0x90 if lead == 0xF0 else 0x80, 0x90 if lead == 0xF4 else 0xC0):
            yield bytes([lead, trail])
            yield from (bytes([lead, trail, third]) for third in range(0x80, 0xC0))


def _flatbuffer(trie: np.ndarray, pool: bytes) -> np.ndarray:
    import flatbuffers  # type: ignore[import-untyped]  # TensorFlow brings it

    builder = flatbuffers.Builder(trie.nbytes + len(pool) + 1024)
    pool_place = builder.CreateByteVector(pool)
    trie_place = builder.CreateNumpyVector(trie)
    # The fields' numbers are their positions in the kernel's schema: 0 tells how a model was made,
    # 1 is the trie, 2 the replacement of NUL, 3 the pool.
    builder.StartObject(4)
    builder.PrependUOffsetTRelativeSlot(1, trie_place, 0)
    builder.PrependInt32Slot(2, _CHANGED, 0)
    builder.PrependUOffsetTRelativeSlot(3, pool_place, 0)
    builder.Finish(builder.EndObject())
    return np.frombuffer(bytes(builder.Output()), np.uint8)
