"""Dropout whose draws are a pure function of their address.

An address says where in a training run a draw is made: four whole numbers, by habit (seed, step,
replica, micro-batch). A layer adds the number of its own stream. The bits then come from hashing
the address and the position in the tensor: no state is kept, so a resumed run draws what the
unbroken run would have drawn, and the bits are the same eagerly, in a graph, under XLA and on
another backend.

Two dropout layers of one model never share a number; the numbers do not depend on the order in
which layers are made, so a model built in another process draws the same bits.
"""

import contextlib
import contextvars
import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

import keras
from keras import ops

# A multiplicative hash of 32-bit words: two odd multipliers between shifted exclusive-ors. All of
# it is arithmetic modulo 2**32 on uint32, which every backend computes alike to the last bit.
_FIRST, _SECOND, _STEP = 0x7FEB352D, 0x846CA68B, 0x9E3779B9
_START = (0x243F6A88, 0x85A308D3)  # the two halves of a key start apart

_keys: contextvars.ContextVar[Any] = contextvars.ContextVar("random_address_keys", default=None)


@contextlib.contextmanager
def random_address(address: Any) -> Iterator[None]:
    """Makes every draw inside the block a pure function of `address` and of the layer's stream.

    An address is four integers (seed, step, replica, micro-batch), as Python's or as one tensor;
    only their lower 32 bits count.

    Example:
        >>> import numpy as np
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
    """Makes draws inside the block those of an address's key words, uint32 [2]."""
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
        words = [tensor[index] for index in range(tensor.shape[0])]
    keys = ops.convert_to_tensor(_START, dtype="uint32")
    for word in words:
        keys = _mix(ops.add(ops.multiply(keys, _word(_STEP)), word))
    return keys


def stream_keys(keys: Any, stream: int) -> Any:
    """The key words of one stream below an address, uint32 [2]."""
    return _mix(ops.bitwise_xor(keys, _word((stream + 1) * _STEP & 0xFFFFFFFF)))


def random_words(keys: Any, count: Any, start: Any = 0) -> Any:
    """Random words uint32 [count], by keys uint32 [2]; the first stands at position `start`.

    Both key words enter between the multiplications, so that two streams are not the same stream
    shifted. `count` may be a scalar tensor.
    """
    position = ops.cast(ops.arange(count, dtype="int32"), "uint32")
    if not isinstance(start, int) or start:  # 0, nearly always, needs no pass over memory
        position = ops.add(position, ops.cast(start, "uint32"))
    words = ops.add(ops.multiply(position, _word(_STEP)), keys[0])
    words = ops.multiply(_fold(words, 16), _word(_FIRST))
    words = ops.bitwise_xor(words, keys[1])
    words = ops.multiply(_fold(words, 15), _word(_SECOND))
    return _fold(words, 16)


def keep_mask(keys: Any, shape: Sequence[Any], threshold: int, start: Any = 0) -> Any:
    """Which numbers of a tensor are kept: each with probability 1 - threshold / 2**32.

    bool, of a shape whose parts are integers or scalar tensors. See `Draw` for the others.
    """
    words = random_words(keys, math.prod(shape), start)
    return ops.reshape(ops.greater_equal(words, _word(threshold)), shape)


def _mix(words: Any) -> Any:
    words = ops.multiply(_fold(words, 16), _word(_FIRST))
    words = ops.multiply(_fold(words, 15), _word(_SECOND))
    return _fold(words, 16)


def _fold(words: Any, bits: int) -> Any:
    return ops.bitwise_xor(words, ops.right_shift(words, _word(bits)))


def _word(value: int) -> Any:
    # A Python integer of 2**31 and more would become an int32 in an operation, and overflow.
    return ops.convert_to_tensor(value, dtype="uint32")


# Streams, which every run's draws depend on: a number that changes makes an old run impossible to
# resume exactly. The head's is far from those of any number of blocks.
EMBEDDINGS = 0
_BLOCKS = 1
_IN_BLOCK = 3
HEAD = 1_000_000


def block_streams(block: int) -> tuple[int, int, int]:
    """The streams of a block's attention probabilities, attention output and feed-forward output.

    Example:
        >>> block_streams(0), block_streams(1)
        ((1, 2, 3), (4, 5, 6))
    """
    first = _BLOCKS + _IN_BLOCK * block
    return first, first + 1, first + 2


WORDS = 2**32  # how many values a random word has


@dataclasses.dataclass(frozen=True)
class Draw:
    """One draw of dropout.

    Attributes:
        keys: the key words, uint32 [2]; None where nothing is dropped.
        threshold: how many of the 2**32 values of a random word mean "drop".
        start: the position of the first number, where a tensor is computed in parts.
    """

    keys: Any | None
    threshold: int
    start: Any = 0


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class Dropout(keras.layers.Layer):
    """Sets a share of the numbers to zero in training and scales the others up.

    Inside `random_address` the draws are a pure function of the address and of `stream`; without
    it they come from a Keras seed generator, so that plain `fit` works.

    Every number has a random word of 32 bits of its own; words below `threshold` mean "drop". Two
    layers of a model never share a stream.

    Example:
        >>> import numpy as np
        >>> dropout = Dropout(0.5, stream=0)
        >>> np.array(dropout(np.ones([1, 3], "float32"), training=False)).tolist()
        [[1.0, 1.0, 1.0]]
    """

    def __init__(self, rate: float, stream: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate, self.stream = rate, stream
        self.threshold = round(rate * WORDS)
        self.supports_masking = True
        if self.threshold:
            self.seed_generator = keras.random.SeedGenerator(seed=stream)
        self.built = True

    def draw(self, training: bool | None) -> Draw:
        """Makes one draw; it drops nothing where `training` is off or the rate is 0."""
        return Draw(self._keys(training), self.threshold)

    def _keys(self, training: bool | None) -> Any | None:
        if not training or not self.threshold:
            return None
        keys = present_keys()
        return stream_keys(self.fresh_keys() if keys is None else keys, self.stream)

    def fresh_keys(self) -> Any:
        """Key words as an address has them, from the seed generator; new ones every time."""
        return address_keys(ops.cast(self.seed_generator.next(), "uint32"))

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Drops; the result has the shape and type of `inputs`."""
        return drop(inputs, self.draw(training))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "rate": self.rate, "stream": self.stream}


def drop(inputs: Any, draw: Draw) -> Any:
    """Drops by a given draw; shape and type stay, and what is kept is scaled up in float32."""
    if draw.keys is None:
        return inputs
    keep = keep_mask(draw.keys, ops.shape(inputs), draw.threshold, draw.start)
    # By the share that `threshold` stands for exactly, which `rate` was rounded to.
    scaled = ops.multiply(ops.cast(inputs, "float32"), WORDS / (WORDS - draw.threshold))
    return ops.cast(ops.where(keep, scaled, ops.zeros_like(scaled)), inputs.dtype)
