"""The model of the kernel that replaces characters, tensorflow-text's `FastBertNormalize`.

The model is a flatbuffer with a trie over the UTF-8 of characters and a pool of replacements. Bytes
that are no UTF-8 reach the trie as they are, so that they can be dropped like characters.
"""

from collections.abc import Iterable, Iterator

import flatbuffers  # type: ignore[import-untyped]
import numpy as np

from keras_bert_impl.tokenization.double_array import build_double_array

_CHANGED = 0x40000000  # the kernel's mark for "has a replacement"
_LENGTH_BITS = 6  # below it: the place in the pool, then the length in bytes
_MAX_LENGTH = (1 << _LENGTH_BITS) - 1


def build_normalizer_model(changes: Iterable[tuple[str, str]]) -> np.ndarray:
    """Builds the kernel's model.

    Args:
        changes: characters with their replacements of at most 63 bytes. All other characters stay;
            NUL and bytes that are no UTF-8 are dropped.

    Returns:
        The flatbuffer, uint8 [bytes].

    Example:
        >>> model = build_normalizer_model([("A", "a")])
        >>> str(model.dtype), model.size > 1000
        ('uint8', True)
    """
    entries = dict.fromkeys(_ill_formed(), _CHANGED)
    pool = bytearray()
    places: dict[bytes, int] = {b"": 0}
    for character, replacement in changes:
        text = replacement.encode()
        if len(text) > _MAX_LENGTH:
            raise ValueError(f"the replacement of {character!r} has more than {_MAX_LENGTH} bytes")
        if text not in places:
            places[text] = len(pool)
            pool += text
        if character != "\0":
            entries[character.encode()] = _CHANGED | places[text] << _LENGTH_BITS | len(text)
    return _flatbuffer(build_double_array(entries), bytes(pool) or b" ")


def _ill_formed() -> Iterator[bytes]:
    """What ICU steps over as one unit where it finds no character: bytes and cut-off characters."""
    yield from (bytes([byte]) for byte in range(0x80, 0x100))
    for lead in range(0xE0, 0xF0):
        trails = range(0xA0 if lead == 0xE0 else 0x80, 0xA0 if lead == 0xED else 0xC0)
        yield from (bytes([lead, trail]) for trail in trails)
    for lead in range(0xF0, 0xF5):
        for trail in range(0x90 if lead == 0xF0 else 0x80, 0x90 if lead == 0xF4 else 0xC0):
            yield bytes([lead, trail])
            yield from (bytes([lead, trail, third]) for third in range(0x80, 0xC0))


def _flatbuffer(trie: np.ndarray, pool: bytes) -> np.ndarray:
    builder = flatbuffers.Builder(trie.nbytes + len(pool) + 1024)
    pool_place = builder.CreateByteVector(pool)
    trie_place = builder.CreateNumpyVector(trie)
    # The fields' numbers are their places in the kernel's schema: 0 tells how a model was made,
    # 1 is the trie, 2 the replacement of NUL, 3 the pool.
    builder.StartObject(4)
    builder.PrependUOffsetTRelativeSlot(1, trie_place, 0)
    builder.PrependInt32Slot(2, _CHANGED, 0)
    builder.PrependUOffsetTRelativeSlot(3, pool_place, 0)
    builder.Finish(builder.EndObject())
    return np.frombuffer(bytes(builder.Output()), np.uint8)
