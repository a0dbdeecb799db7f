"""Random bits that are a pure function of their address.

An address says where in a training run a draw is made: four whole numbers, by habit (seed, step,
replica, micro-batch). A layer adds the number of its own stream. The bits then come from hashing
the address and the position in the tensor: no state is kept, so a resumed run draws what the
unbroken run would have drawn, and the bits are the same eagerly, in a graph, under XLA and on
another backend.
"""

import contextlib
import contextvars
from collections.abc import Iterator, Sequence
from typing import Any

from keras import ops

# A multiplicative hash of 32-bit words: two odd multipliers between shifted exclusive-ors.
_FIRST, _SECOND, _STEP = 0x7FEB352D, 0x846CA68B, 0x9E3779B9
_START = (0x243F6A88, 0x85A308D3)  # the two halves of a key start apart

_keys: contextvars.ContextVar[Any] = contextvars.ContextVar("random_address_keys", default=None)


@contextlib.contextmanager
def random_address(address: Any) -> Iterator[None]:
    """Makes every draw inside the block a pure function of `address` and of the layer's stream.

    Args:
        address: four whole numbers (seed, step, replica, micro-batch), as Python integers or as
            one tensor of an integer type; only their lower 32 bits count.

    Example:
        >>> import numpy as np
        >>> from keras_bert_impl.layers.dropout import Dropout
        >>> dropout, ones = Dropout(0.5, stream=3), np.ones([4, 8], "float32")
        >>> with random_address([1, 20, 0, 0]):
        ...     first = dropout(ones, training=True)
        >>> with random_address([1, 20, 0, 0]):
        ...     again = dropout(ones, training=True)
        >>> bool(np.array_equal(first, again))
        True
    """
    with at_keys(address_keys(address)):
        yield


@contextlib.contextmanager
def at_keys(keys: Any) -> Iterator[None]:
    """Makes draws inside the block those of an address that was hashed before.

    Args:
        keys: uint32 [2], from `address_keys` or `present_keys`.
    """
    token = _keys.set(keys)
    try:
        yield
    finally:
        _keys.reset(token)


def present_keys() -> Any | None:
    """The key words of the present address, uint32 [2]; None without an address."""
    return _keys.get()


def address_keys(address: Any) -> Any:
    """Hashes an address of whole numbers to two key words, uint32 [2]."""
    if isinstance(address, Sequence):
        words: Sequence[Any] = [
            _word(int(part) & 0xFFFFFFFF) if isinstance(part, int) else ops.cast(part, "uint32")
            for part in address
        ]
    else:
        tensor = ops.cast(ops.convert_to_tensor(address), "uint32")
        words = [tensor[place] for place in range(tensor.shape[0])]
    keys = ops.convert_to_tensor(_START, dtype="uint32")
    for word in words:
        keys = _mix(ops.add(ops.multiply(keys, _word(_STEP)), word))
    return keys


def stream_keys(keys: Any, stream: int) -> Any:
    """The key words of one stream below an address, uint32 [2]."""
    return _mix(ops.bitwise_xor(keys, _word((stream + 1) * _STEP & 0xFFFFFFFF)))


def random_words(keys: Any, count: Any, start: Any = 0) -> Any:
    """`count` random 32-bit words.

    Both key words enter between the multiplications, so that two streams are not the same stream
    shifted.

    Args:
        keys: uint32 [2].
        count: how many words; a Python integer or a scalar tensor.
        start: the place of the first of them.

    Returns:
        uint32 [count].
    """
    position = ops.cast(ops.arange(count, dtype="int32"), "uint32")
    if not isinstance(start, int) or start:
        position = ops.add(position, ops.cast(start, "uint32"))
    words = ops.add(ops.multiply(position, _word(_STEP)), keys[0])
    words = ops.multiply(_fold(words, 16), _word(_FIRST))
    words = ops.bitwise_xor(words, keys[1])
    words = ops.multiply(_fold(words, 15), _word(_SECOND))
    return _fold(words, 16)


def keep_mask(keys: Any, shape: Sequence[Any], threshold: int, start: Any = 0) -> Any:
    """Which numbers of a tensor are kept: each with probability 1 - threshold / 2**32.

    Args:
        keys: uint32 [2].
        shape: the tensor's shape; its parts are Python integers or scalar tensors.
        threshold: how many of the 2**32 values of a word mean "drop".
        start: the place of the first number, where the tensor is a part of a larger one.

    Returns:
        bool, of that shape.
    """
    size: Any = 1
    for part in shape:
        size = size * part
    words = random_words(keys, size, start)
    return ops.reshape(ops.greater_equal(words, _word(threshold)), shape)


def _mix(words: Any) -> Any:
    words = ops.multiply(_fold(words, 16), _word(_FIRST))
    words = ops.multiply(_fold(words, 15), _word(_SECOND))
    return _fold(words, 16)


def _fold(words: Any, bits: int) -> Any:
    return ops.bitwise_xor(words, _shift(words, bits))


def _shift(words: Any, bits: int) -> Any:
    return ops.right_shift(words, _word(bits))


def _word(value: int) -> Any:
    return ops.convert_to_tensor(value, dtype="uint32")
