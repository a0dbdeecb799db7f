"""Texts as the rows that a BERT model reads: `[CLS] a [SEP]`, `[CLS] a [SEP] b [SEP]`.

A text that is too long is truncated, keeps its two ends, or becomes a row for each of its windows;
then `join_windows` makes one answer of theirs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.tokenization.long_texts import (
    HEAD_TAIL,
    MAX,
    LongTexts,
    head_length,
    make_windows,
    window_room,
)
from keras_bert_impl.tokenization.packing import EXAMPLE_WEIGHTS, truncated_lengths
from pipelines.records.rows import Numbers, Rows

if TYPE_CHECKING:
    from keras_bert_impl.tokenization.tokenizer import LineTokenizer, TokenBlock
    from keras_bert_impl.tokenization.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class TextExample:
    """One text, or pair of texts, to classify or to give a number to."""

    identifier: str  # what a submission calls it
    text_a: str
    text_b: str | None = None
    label: str | None = None
    note: str = ""  # what is odd about it
    line: int = field(default=0, compare=False)


class Spans(NamedTuple):
    """Stretches of tokens in one flat array, one a row: ids int32 [tokens]; int64 [rows] both."""

    ids: NDArray[np.int32]
    start: Numbers
    length: Numbers

    @classmethod
    def of(cls, block: "TokenBlock") -> "Spans":
        offsets = np.asarray(block.offsets, np.int64)
        return cls(np.asarray(block.ids, np.int32), offsets[:-1], np.diff(offsets))


def pack(
    vocabulary: "Vocabulary", first: Spans, second: Spans | None = None
) -> tuple[Numbers, dict[str, NDArray[np.int32]]]:
    """Packs one span or two into each row, nothing truncated: the `lengths` and `tokens` of `Rows`.

    A row where `second` has no token is `[CLS] a [SEP]`.
    """
    length_b = np.zeros_like(first.length) if second is None else second.length
    has_b = length_b > 0
    lengths = first.length + 2 + length_b + has_b
    starts = np.cumsum(lengths) - lengths
    ids = np.empty(int(lengths.sum()), np.int32)
    ids[starts] = vocabulary.cls_id
    ids[ranges(starts + 1, first.length)] = first.ids[ranges(first.start, first.length)]
    end_of_a = starts + 1 + first.length
    ids[end_of_a] = vocabulary.sep_id
    segments = np.zeros_like(ids)
    if second is not None:
        ids[ranges(end_of_a + 1, length_b)] = second.ids[ranges(second.start, length_b)]
        ids[(starts + lengths - 1)[has_b]] = vocabulary.sep_id
        segments[ranges(end_of_a + 1, length_b + has_b)] = 1
    return lengths, {"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": segments}


def ranges(starts: Numbers, lengths: Numbers) -> Numbers:
    """The numbers of several ranges, one range after the other.

    Example:
        >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
        [5, 6, 0, 1, 2]
    """
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


def text_rows(
    examples: Sequence[TextExample],
    tokenizer: "LineTokenizer",
    max_seq_length: int,
    long_texts: LongTexts | None = None,
) -> Rows:
    """Tokenizes texts and pairs and packs each example into one row, or one row a window.

    A second text that is empty, or has no tokens, counts as none, as in the original. Of a pair the
    longer text loses tokens first. Windows move over the second text of a pair, with the first one
    in front, and have `example_weights`: a text counts once, however many windows it has.
    """
    long_texts = long_texts or LongTexts()
    first = Spans.of(tokenizer.encode_lines([example.text_a for example in examples]))
    second = Spans.of(tokenizer.encode_lines([example.text_b or "" for example in examples]))
    if long_texts.has_windows:
        return _window_rows(first, second, tokenizer, max_seq_length, long_texts.doc_stride)
    specials = 2 + (second.length > 0)
    kept = truncated_lengths(first.length, second.length, max_seq_length - specials)
    shorten = _head_and_tail if long_texts.long_text == HEAD_TAIL else _head
    packed = pack(tokenizer.vocabulary, shorten(first, kept[0]), shorten(second, kept[1]))
    cut = first.length + second.length - kept[0] - kept[1]
    return Rows(np.arange(len(examples)), *packed, num_truncated=cut)


def _head(texts: Spans, kept: Numbers) -> Spans:
    return texts._replace(length=kept)


def _head_and_tail(texts: Spans, kept: Numbers) -> Spans:
    head = head_length(kept)
    ends = texts.start + texts.length
    starts = np.stack([texts.start, ends - (kept - head)], axis=1)  # [texts, 2]
    lengths = np.stack([head, kept - head], axis=1)
    ids = texts.ids[ranges(starts.reshape(-1), lengths.reshape(-1))]
    return Spans(ids, np.cumsum(kept) - kept, kept)


def _window_rows(
    first: Spans, second: Spans, tokenizer: "LineTokenizer", max_seq_length: int, doc_stride: int
) -> Rows:
    front, size = window_room(first.length, second.length, max_seq_length)
    has_b = second.length > 0
    windows = make_windows(np.where(has_b, second.length, first.length), size, doc_stride)
    in_b, starts = has_b[windows.document], windows.start
    # A window over a second text has the first one in front; else it is the first one.
    first_start = first.start[windows.document] + np.where(in_b, 0, starts)
    first_length = np.where(in_b, front[windows.document], windows.lengths)
    second_start = second.start[windows.document] + np.where(in_b, starts, 0)
    lengths, tokens = pack(
        tokenizer.vocabulary,
        Spans(first.ids, first_start, first_length),
        Spans(second.ids, second_start, np.where(in_b, windows.lengths, 0)),
    )
    counts = np.bincount(windows.document, minlength=len(has_b))
    weights = (1 / counts[windows.document]).astype(np.float32)
    cut = np.where(has_b, first.length - front, 0)
    return Rows(windows.document, lengths, tokens, {EXAMPLE_WEIGHTS: weights}, num_truncated=cut)


def join_windows(
    rows: Rows, logits: NDArray[np.float32], window_answers: str
) -> NDArray[np.float32]:
    """One answer an example, [examples, labels]: the mean of its windows' logits, or the most."""
    firsts = np.flatnonzero(np.diff(rows.examples, prepend=-1))
    if window_answers == MAX:
        return np.maximum.reduceat(logits, firsts, axis=0)
    counts = np.diff(np.append(firsts, len(logits)))
    means = np.add.reduceat(logits, firsts, axis=0) / counts[:, None]
    return means.astype(np.float32)
