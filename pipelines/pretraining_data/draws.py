"""Random draws that are pure functions of what is drawn, never of the order of work.

Every example has a key: a one-to-one image of (seed, copy, first sentence of its chunk). A draw is
a hash of (key, purpose, index). So the number of workers, the order of work, a restart and the
runner cannot change a single bit, and any example can be made again alone.

The hash is the finaliser of SplitMix64, which is one-to-one on 64-bit words: two examples of one
run never share a key.
"""

import enum
import itertools

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_HALF = np.uint64(32)
_INDEXES_PER_PURPOSE = 1 << 20


class Purpose(enum.IntEnum):
    """The purposes of draws; each has its own million of indexes."""

    SHORT = 0
    SHORT_LENGTH = 1
    SPLIT = 2
    NEXT = 3
    PARTNER_DOCUMENT = 4
    PARTNER_SENTENCE = 5
    TRUNCATE_A = 6
    TRUNCATE_B = 7
    SELECT = 8
    REPLACE = 9
    NGRAM = 10


def mix(words: Words) -> Words:
    """Scrambles 64-bit words one-to-one."""
    mixed = words ^ (words >> np.uint64(30))
    mixed *= _FIRST
    mixed ^= mixed >> np.uint64(27)
    mixed *= _SECOND
    mixed ^= mixed >> np.uint64(31)
    return mixed


def seed_word(seed: int) -> np.uint64:
    """Turns a seed (any whole number) into a 64-bit word."""
    with np.errstate(over="ignore"):
        word = np.array([seed & 0xFFFFFFFFFFFFFFFF], np.uint64) * _GOLDEN + _FIRST
        return mix(mix(word) + _GOLDEN)[0]


def example_keys(identities: Words, seed: np.uint64) -> Words:
    """The keys of examples, by `copy * sentences in the corpus + first sentence`: one-to-one.

    Example:
        >>> keys = example_keys(np.arange(1000, dtype=np.uint64), seed_word(5))
        >>> len(set(keys.tolist()))
        1000
    """
    return mix(mix(identities * _GOLDEN + seed) + seed)


def draw(keys: Words, purpose: Purpose, index: int | Words = 0) -> Words:
    """64 random bits for each key."""
    first = purpose * _INDEXES_PER_PURPOSE + 1
    if isinstance(index, int):
        return mix(keys + np.uint64((first + index) * int(_GOLDEN) & 0xFFFFFFFFFFFFFFFF))
    return mix(keys + (index + np.uint64(first)) * _GOLDEN)


def below(bits: Words, bounds: Words | int) -> NDArray[np.int64]:
    """Turns random bits into uniform whole numbers in [0, bound), by the upper 32 bits.

    Example:
        >>> below(np.array([0, 2**63, 2**64 - 1], np.uint64), 10).tolist()
        [0, 5, 9]
    """
    limits = np.asarray(bounds).astype(np.uint64)
    return (((bits >> _HALF) * limits) >> _HALF).astype(np.int64)


def happens(bits: Words, probability: float) -> NDArray[np.bool_]:
    """True with the given probability (resolution 2**-32).

    Example:
        >>> happens(np.array([0, 2**63, 2**64 - 1], np.uint64), 0.5).tolist()
        [True, False, False]
    """
    return (bits >> _HALF) < np.uint64(round(probability * 2**32))


def key_ranges(first_key: int, end_key: int, parts: int) -> list[tuple[int, int]]:
    """Cuts a range of keys into equal parts, [first, end) each.

    The parts of all keys are the shards: which shard an example is in is a function of its key.

    Example:
        >>> key_ranges(0, 10, 3)
        [(0, 4), (4, 7), (7, 10)]
    """
    span = end_key - first_key
    edges = [first_key + -(-span * part // parts) for part in range(parts + 1)]
    return list(itertools.pairwise(edges))
