"""Gathers the tokens of planned pairs as padded examples: [CLS] A [SEP] B [SEP].

A block of examples is gathered by a single `take` from the flat token array, so that no Python runs
for each example or token.
"""

import dataclasses

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Tokens = NDArray[np.unsignedinteger]


@dataclasses.dataclass(frozen=True)
class SpecialIds:
    """The ids of the tokens that frame and hide tokens."""

    pad: int
    cls: int
    sep: int
    mask: int


@dataclasses.dataclass
class Spans:
    """Where the tokens of examples lie in one flat array; A and B already truncated.

    Attributes:
        start_a, len_a, start_b, len_b: int64 [examples]; `len_b` is 0 where there is no B.
    """

    start_a: Numbers
    len_a: Numbers
    start_b: Numbers
    len_b: Numbers


@dataclasses.dataclass
class PaddedExamples:
    """Examples of a fixed length.

    Attributes:
        ids: unsigned [examples, length], padded.
        len_a, len_b: int64 [examples], tokens of A and B.
        pairs: False where the examples have no B and no second [SEP].
    """

    ids: Tokens
    len_a: Numbers
    len_b: Numbers
    pairs: bool = True

    def lengths(self) -> Numbers:
        """int64 [examples]: tokens with [CLS] and [SEP], without padding."""
        return self.len_a + self.len_b + (3 if self.pairs else 2)


def gather_examples(
    tokens: Tokens, spans: Spans, length: int, special: SpecialIds, *, pairs: bool = True
) -> PaddedExamples:
    """Copies the tokens of spans into padded examples.

    Args:
        tokens: unsigned [tokens], the flat token array (may be memory-mapped).
        special: ids of [PAD], [CLS] and [SEP].
        pairs: with B and a second [SEP].

    Example:
        >>> tokens = np.arange(10, 20, dtype=np.uint16)
        >>> one = lambda number: np.array([number])
        >>> spans = Spans(one(0), one(2), one(5), one(3))
        >>> gather_examples(tokens, spans, 10, SpecialIds(0, 1, 2, 3)).ids.tolist()
        [[1, 10, 11, 2, 15, 16, 17, 2, 0, 0]]
    """
    column = np.arange(length)
    after_a = (spans.len_a + 1)[:, None]  # [examples, 1]: position of the first [SEP]
    # The source of each position, as if B followed A with one position for [SEP] between.
    source = (spans.start_a - 1)[:, None] + column  # [examples, length]
    if pairs:
        step = (spans.start_b - spans.start_a - spans.len_a - 1)[:, None]
        np.add(source, step, out=source, where=column > after_a)
    # Padding and special positions may point outside the array: they are overwritten below.
    ids = tokens.take(source, mode="clip")
    examples = PaddedExamples(ids, spans.len_a, spans.len_b, pairs)
    ids[:, 0] = special.cls
    each = np.arange(len(ids))
    ids[each, spans.len_a + 1] = special.sep
    lengths = examples.lengths()
    ids[each, lengths - 1] = special.sep
    np.copyto(ids, special.pad, where=column >= lengths[:, None], casting="unsafe")
    return examples
