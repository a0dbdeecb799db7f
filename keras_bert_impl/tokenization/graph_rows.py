"""Truncation, packing and windows inside a TensorFlow graph: the same as in NumPy elsewhere."""

from typing import Any

import tensorflow as tf

from keras_bert_impl.tokenization.long_texts import (
    HEAD_TAIL,
    TRUNCATE,
    Windows,
    check_stride,
    head_length,
)
from keras_bert_impl.tokenization.packing import truncated_lengths
from keras_bert_impl.tokenization.vocabulary import Vocabulary


def pack_in_graph(
    ids_a: tf.RaggedTensor,
    ids_b: tf.RaggedTensor | None,
    max_seq_length: int,
    vocabulary: Vocabulary,
    long_text: str = TRUNCATE,
) -> dict[str, Any]:
    """Packs one segment or two a row: [CLS] A [SEP] B [SEP], truncated as in the original.

    A row without ids of a second segment is [CLS] A [SEP], as in training.

    Gives `input_ids`, `input_mask` and `segment_ids`, int32 [batch, max_seq_length] each.

    Example:
        >>> tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]
        >>> packed = pack_in_graph(tf.ragged.constant([[5, 5]]), None, 6, Vocabulary(tokens))
        >>> packed["input_ids"].numpy().tolist(), packed["input_mask"].numpy().tolist()
        ([[2, 5, 5, 3, 0, 0]], [[1, 1, 1, 1, 0, 0]])
    """
    lengths_a = tf.cast(ids_a.row_lengths(), tf.int32)
    lengths_b = (
        tf.zeros_like(lengths_a) if ids_b is None else tf.cast(ids_b.row_lengths(), tf.int32)
    )
    has_b = tf.cast(lengths_b > 0, tf.int32)
    kept_a, kept_b = truncated_lengths(lengths_a, lengths_b, max_seq_length - 2 - has_b, tf)
    batch = tf.shape(lengths_a)[0]
    cls, sep = (tf.fill([batch, 1], number) for number in (vocabulary.cls_id, vocabulary.sep_id))
    shortened = _ends if long_text == HEAD_TAIL else first_of
    parts = [cls, shortened(ids_a, kept_a), sep]
    if ids_b is not None:
        # One [SEP] in rows with a second text, none in the others.
        end_of_b = tf.RaggedTensor.from_tensor(sep, lengths=has_b)
        parts += [shortened(ids_b, kept_b), end_of_b]
    packed = tf.concat(parts, axis=1)  # [batch, (length)]
    lengths = tf.cast(packed.row_lengths(), tf.int32)[:, tf.newaxis]
    positions = tf.range(max_seq_length)[tf.newaxis]  # [1, max_seq_length]
    in_use = positions < lengths
    # The positions after [CLS] A [SEP].
    in_b = in_use & (positions >= kept_a[:, tf.newaxis] + 2)
    return {
        "input_ids": packed.to_tensor(vocabulary.pad_id, shape=[None, max_seq_length]),
        "input_mask": tf.cast(in_use, tf.int32),
        "segment_ids": tf.cast(in_b, tf.int32),
    }


def first_of(rows: tf.RaggedTensor, counts: Any) -> tf.RaggedTensor:
    """The first `counts` numbers of each row, or all where there are fewer."""
    return stretch_of(rows, tf.zeros_like(counts), counts)


def stretch_of(rows: tf.RaggedTensor, starts: Any, ends: Any) -> tf.RaggedTensor:
    """The numbers of each row from `starts` to before `ends`, at most to its own end.

    A ragged `tf.gather` of each row would take half a second to trace.

    Example:
        >>> stretch_of(tf.ragged.constant([[5, 6, 7], [8]]), [1, 0], [9, 0]).to_list()
        [[6, 7], []]
    """
    offsets, lengths = rows.row_starts(), rows.row_lengths()
    starts, ends = (
        offsets + tf.minimum(tf.cast(each, offsets.dtype), lengths) for each in (starts, ends)
    )
    places = tf.ragged.range(starts, ends, row_splits_dtype=offsets.dtype)
    return places.with_flat_values(tf.gather(rows.flat_values, places.flat_values))


def _ends(rows: tf.RaggedTensor, counts: Any) -> tf.RaggedTensor:
    lengths, kept = rows.row_lengths(), tf.cast(counts, rows.row_splits.dtype)
    head = head_length(kept)
    tail = stretch_of(rows, lengths - (kept - head), lengths)
    return tf.concat([first_of(rows, head), tail], axis=1)


def trim_to_longest(packed: dict[str, Any]) -> dict[str, Any]:
    """Cuts off the positions that are padding in every row of a batch, int32 [batch, length] each.

    One position is left even of an empty batch.

    Example:
        >>> trim_to_longest({"input_mask": tf.constant([[1, 1, 0], [1, 0, 0]])})["input_mask"].shape
        TensorShape([2, 2])
    """
    lengths = tf.reduce_sum(packed["input_mask"], axis=1)
    longest = tf.maximum(tf.reduce_max(lengths), 1)
    return {name: rows[:, :longest] for name, rows in packed.items()}


def windows_in_graph(lengths: Any, size: Any, stride: int) -> Windows:
    """Covers documents with windows that overlap; see `long_texts.make_windows`.

    Example:
        >>> windows = windows_in_graph(tf.constant([7, 0, 3]), size=4, stride=2)
        >>> [array.numpy().tolist() for array in windows]
        [[0, 0, 0, 1, 2], [0, 2, 4, 0, 0], [4, 6, 7, 0, 3]]
    """
    check_stride(stride)
    totals = tf.cast(lengths, tf.int64)
    # At least 1: in a served model a question may fill the whole input.
    sizes = tf.broadcast_to(tf.maximum(tf.cast(size, tf.int64), 1), tf.shape(totals))
    steps = tf.minimum(sizes, stride)
    counts = 1 + -(-tf.maximum(totals - sizes, 0) // steps)  # [documents]
    numbers = tf.ragged.range(counts)  # [documents, (windows)]
    document = numbers.value_rowids()
    start = numbers.flat_values * tf.gather(steps, document)
    end = tf.minimum(start + tf.gather(sizes, document), tf.gather(totals, document))
    return Windows(document, start, end)


def window_contents(tokens: tf.RaggedTensor, windows: Windows) -> tf.RaggedTensor:
    """The tokens (or what else there is of each) [documents, (tokens)] as [windows, (tokens)].

    Example:
        >>> tokens = tf.ragged.constant([[5, 6, 7]])
        >>> window_contents(tokens, windows_in_graph([3], size=2, stride=1)).to_list()
        [[5, 6], [6, 7]]
    """
    first = tf.gather(tf.cast(tokens.row_splits, tf.int64), windows.document)
    positions = tf.ragged.range(first + windows.start, first + windows.end)
    return tf.gather(tokens.flat_values, positions)


def owned_in_graph(windows: Windows) -> tf.RaggedTensor:
    """Which window owns each token, bool [windows, (tokens)]; see `long_texts.owned_tokens`.

    Example:
        >>> owned_in_graph(windows_in_graph([6], size=4, stride=2)).to_list()
        [[True, True, True, False], [False, True, True, True]]
    """
    positions = tf.ragged.range(windows.start, windows.end)  # [windows, (tokens)]
    number, position = positions.value_rowids(), positions.flat_values
    start, end = tf.gather(windows.start, number), tf.gather(windows.end, number)
    near = tf.minimum(position - start, end - 1 - position)
    context = tf.cast(near, tf.float64) + 0.01 * tf.cast(end - start, tf.float64)
    # Segments are the tokens of all documents, numbered with gaps: no document is longer than this.
    longest = tf.reduce_max(tf.concat([windows.end, [0]], axis=0))
    token, segment = tf.unique(tf.gather(windows.document, number) * longest + position)
    tokens = tf.size(token)
    best = tf.math.unsorted_segment_max(context, segment, tokens)
    entries = tf.range(tf.size(position))
    candidate = tf.where(context == tf.gather(best, segment), entries, tf.size(position))
    owner = tf.math.unsorted_segment_min(candidate, segment, tokens)
    owned = tf.gather(owner, segment) == entries
    return positions.with_flat_values(owned)
