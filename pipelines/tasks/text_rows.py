"""Spans of tokens as the rows that a BERT model reads: `[CLS] a [SEP]`, `[CLS] a [SEP] b [SEP]`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.tokenization.truncation import truncated_lengths
from pipelines.records.rows import Numbers, Rows

if TYPE_CHECKING:
    from keras_bert_impl.tokenization.tokenizer import TokenBlock, Tokenizer
    from keras_bert_impl.tokenization.vocabulary import Vocabulary

SHORTEST_ROW = 5
"""A pair of one token each has so many with [CLS] and [SEP]."""


@dataclass(frozen=True, slots=True)
class TextExample:
    """One text, or pair of texts, to classify or to give a number to.

    Attributes:
        identifier: what a submission calls it: the index column, or the row's number from 0.
        text_a: the first (or only) text.
        text_b: the second text, or None.
        label: the label as the task's head understands it, or None in a test set.

    Example:
        >>> TextExample("0", "It rains.", "The street is wet.", "entailment").label
        'entailment'
    """

    identifier: str
    text_a: str
    text_b: str | None = None
    label: str | None = None


class Spans(NamedTuple):
    """Stretches of tokens in one flat array, one a row.

    Attributes:
        ids: int32 [tokens].
        start: int64 [rows], where each stretch begins.
        length: int64 [rows], its tokens.
    """

    ids: NDArray[np.int32]
    start: Numbers
    length: Numbers

    @classmethod
    def of(cls, block: "TokenBlock") -> "Spans":
        """All tokens of each line of a tokenized block.

        Example:
            >>> from keras_bert_impl.tokenization.tokenizer import TokenBlock
            >>> Spans.of(TokenBlock(np.array([7, 8, 9]), np.array([0, 1, 3]))).length.tolist()
            [1, 2]
        """
        offsets = np.asarray(block.offsets, np.int64)
        return cls(np.asarray(block.ids, np.int32), offsets[:-1], np.diff(offsets))


def pack(
    vocabulary: "Vocabulary", first: Spans, second: Spans | None = None
) -> tuple[Numbers, dict[str, NDArray[np.int32]]]:
    """Packs one span or two into each row, nothing truncated.

    Args:
        vocabulary: has the special tokens.
        first: `a` of each row.
        second: `b` of each row; a row where it has no token is `[CLS] a [SEP]`.

    Returns:
        The lengths of the rows, int64 [rows], and `input_ids`, `input_mask` and `segment_ids`, each
        int32 [tokens of all rows]: the `lengths` and `tokens` of `Rows`.

    Example:
        >>> from keras_bert_impl.tokenization.vocabulary import Vocabulary
        >>> vocabulary = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"])
        >>> ids = np.array([5, 5, 6], np.int32)
        >>> lengths, tokens = pack(vocabulary, Spans(ids, np.array([0]), np.array([2])),
        ...                        Spans(ids, np.array([2]), np.array([1])))
        >>> tokens["input_ids"].tolist(), tokens["segment_ids"].tolist()
        ([2, 5, 5, 3, 6, 3], [0, 0, 0, 0, 1, 1])
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
    return lengths, {
        "input_ids": ids,
        "input_mask": np.ones_like(ids),
        "segment_ids": segments,
    }


def ranges(starts: Numbers, lengths: Numbers) -> Numbers:
    """The numbers of several ranges, one range after the other.

    Example:
        >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
        [5, 6, 0, 1, 2]
    """
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


def text_rows(examples: Sequence[TextExample], tokenizer: "Tokenizer", max_seq_length: int) -> Rows:
    """Tokenizes texts and pairs and packs each example into one row.

    A second text that is empty, or has no tokens, counts as none, as in the original.

    Args:
        examples: what to pack.
        tokenizer: gives the tokens' ids.
        max_seq_length: the most tokens of a row; the longer text of a pair is truncated first.

    Example:
        >>> from keras_bert_impl.tokenization.text_settings import TextSettings
        >>> from keras_bert_impl.tokenization.tokenizer import Tokenizer
        >>> from keras_bert_impl.tokenization.vocabulary import Vocabulary
        >>> words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "rain", "wet"]
        >>> example = TextExample("0", "Rain", "wet")
        >>> rows = text_rows([example], Tokenizer(TextSettings(Vocabulary(words))), 7)
        >>> rows.padded(7)["input_ids"].tolist()
        [[2, 5, 3, 6, 3, 0, 0]]
    """
    first = Spans.of(tokenizer.encode_lines([example.text_a for example in examples]))
    second = Spans.of(tokenizer.encode_lines([example.text_b or "" for example in examples]))
    specials = 2 + (second.length > 0)
    kept_a, kept_b = truncated_lengths(first.length, second.length, max_seq_length - specials)
    lengths, tokens = pack(
        tokenizer.vocabulary, first._replace(length=kept_a), second._replace(length=kept_b)
    )
    return Rows(np.arange(len(examples)), lengths, tokens)
