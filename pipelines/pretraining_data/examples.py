"""From token spans to padded rows: [CLS] A [SEP] B [SEP], a block of examples at a time."""

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
    """Where the tokens of examples stand in one flat array; A and B already truncated.

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
        pairs: False when the rows have no B and no second [SEP].
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
    """Copies the spans' tokens into rows.

    Args:
        tokens: unsigned [tokens], the flat token array (may be memory-mapped).
        spans: where A and B stand.
        length: length of a row, e.g. 128.
        special: ids of [PAD], [CLS] and [SEP].
        pairs: with B and a second [SEP].

    Returns:
        The rows; ids have the type of `tokens`.

    Example:
        >>> tokens = np.arange(10, 20, dtype=np.uint16)
        >>> one = lambda number: np.array([number])
        >>> spans = Spans(one(0), one(2), one(5), one(3))
        >>> gather_examples(tokens, spans, 10, SpecialIds(0, 1, 2, 3)).ids.tolist()
        [[1, 10, 11, 2, 15, 16, 17, 2, 0, 0]]
    """
    column = np.arange(length)
    after_a = (spans.len_a + 1)[:, None]  # [examples, 1]: place of the first [SEP]
    source = (spans.start_a - 1)[:, None] + column  # [examples, length]
    if pairs:
        step = (spans.start_b - spans.start_a - spans.len_a - 1)[:, None]
        np.add(source, step, out=source, where=column > after_a)
    ids = tokens.take(source, mode="clip")
    rows = PaddedExamples(ids, spans.len_a, spans.len_b, pairs)
    ids[:, 0] = special.cls
    each = np.arange(len(ids))
    ids[each, spans.len_a + 1] = special.sep
    lengths = rows.lengths()
    ids[each, lengths - 1] = special.sep
    np.copyto(ids, special.pad, where=column >= lengths[:, None], casting="unsafe")
    return rows
