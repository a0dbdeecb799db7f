"""A double-array trie over bytes, laid out like darts-clone's, which tensorflow-text reads.

The trie is an array of 32-bit units; unit 0 is the root. A unit holds a label (its byte), whether
a value hangs below it, and an offset: the child for byte b of the unit at place p stands at
`p ^ offset ^ b`, and p's value at `p ^ offset`. The place `p ^ offset` is called p's base here. A
child is recognised by its label alone, so no two units may share a base.
"""

from collections.abc import Mapping
from itertools import chain

import numpy as np

_BLOCK = 256
_VALUE_BELOW = 0x100
_IS_VALUE = 0x80000000
_MAX_DIRECT_OFFSET = 1 << 21
# A unit's children have labels from 0x80 on, as all but the first bytes of UTF-8: places 1 to 0x7F
# of its block are never taken by them and hold the values of other units.
_FREE_PLACES = range(1, 0x80)


def build_double_array(entries: Mapping[bytes, int]) -> np.ndarray:
    r"""Builds the trie.

    Args:
        entries: a value of 31 bits for each key. All bytes of a key but the first are at least
            0x80, as in a character of UTF-8 or the beginning of one.

    Returns:
        The units, uint32 [a multiple of 256].

    Example:
        >>> units = build_double_array({b"a": 1, "é".encode(): 2})
        >>> look_up(units, b"a"), look_up(units, b"\xc3\xa9"), look_up(units, b"\xc3")
        (1, 2, None)
    """
    children: dict[bytes, set[int]] = {b"": set()}
    for key in entries:
        for end in range(1, len(key) + 1):
            children.setdefault(key[: end - 1], set()).add(key[end - 1])
    # The root's block comes second: its own unit stands at place 0.
    base = {prefix: _BLOCK * (number + 1) for number, prefix in enumerate(children)}
    free = (block + place for block in list(base.values())[1:] for place in _FREE_PLACES)
    extra = (_BLOCK * (len(base) + 1 + n // 127) + 1 + n % 127 for n in range(len(entries)))
    leaf_bases = chain(free, extra)

    places = {b"": 0}
    for prefix, labels in children.items():
        places |= {prefix + bytes([label]): base[prefix] ^ label for label in labels}
    units: dict[int, int] = {}
    for node, place in places.items():
        node_base = base[node] if node in base else next(leaf_bases)
        unit = _encode_offset(place ^ node_base) | (node[-1] if node else 0)
        if node in entries:
            unit |= _VALUE_BELOW
            units[node_base] = entries[node] | _IS_VALUE
        units[place] = unit
    array = np.zeros((max(units) // _BLOCK + 1) * _BLOCK, np.uint32)
    array[list(units)] = np.fromiter(units.values(), np.uint32, len(units))
    return array


def look_up(units: np.ndarray, key: bytes) -> int | None:
    """The value of a key, read as the kernels read it; None where there is none."""
    place = 0
    for byte in key:
        place ^= _decode_offset(int(units[place])) ^ byte
        if int(units[place]) & (_IS_VALUE | 0xFF) != byte:
            return None
    unit = int(units[place])
    if not unit & _VALUE_BELOW:
        return None
    return int(units[place ^ _decode_offset(unit)]) & ~_IS_VALUE


def _encode_offset(offset: int) -> int:
    if offset < _MAX_DIRECT_OFFSET:
        return offset << 10
    raise ValueError(f"the trie has more than {_MAX_DIRECT_OFFSET} units")


def _decode_offset(unit: int) -> int:
    return (unit >> 10) << ((unit & 0x200) >> 6)
