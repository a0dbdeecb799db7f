"""Texts and pairs of texts as a model's inputs, inside a TensorFlow graph."""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from keras_bert_impl.tokenization.vocabulary import Vocabulary


class TextInputs(NamedTuple):
    """What the model reads for a batch of texts: int32 [batch, length] each.

    Attributes:
        input_ids: the ids, padded with that of [PAD].
        input_mask: 1 for a piece, 0 for padding.
        segment_ids: 1 for the second text and its [SEP], else 0.
    """

    input_ids: tf.Tensor
    input_mask: tf.Tensor
    segment_ids: tf.Tensor


class TextPacker:
    """Tokenizes and packs `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`.

    What is too long is shortened as in training: the longer text of a pair loses pieces first. A
    second text without pieces counts as none.

    Args:
        tokenizer: takes strings [n] and gives ragged int32 ids [n, (pieces)].
        vocabulary: knows the ids of the special pieces.
        max_length: the most pieces of a row.
    """

    def __init__(
        self,
        tokenizer: Callable[[tf.Tensor], tf.RaggedTensor],
        vocabulary: Vocabulary,
        max_length: int,
    ) -> None:
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._max_length = max_length

    def pack(self, texts: tf.Tensor) -> TextInputs:
        """Packs a batch of texts, strings [batch]."""
        return self._dense([self._first(self._ids(texts)[:, : self._max_length - 2])])

    def pack_pairs(self, texts_a: tf.Tensor, texts_b: tf.Tensor) -> TextInputs:
        """Packs a batch of pairs, strings [batch] each."""
        ids_a, ids_b = self._ids(texts_a), self._ids(texts_b)
        lengths_a, lengths_b = ids_a.row_lengths(), ids_b.row_lengths()
        ends = tf.cast(lengths_b > 0, tf.int64)  # the second [SEP], where there is a second text
        room = self._max_length - 2 - ends
        half = (room + 1) // 2  # of two texts that are both too long, the first keeps the odd one
        kept_a = tf.minimum(lengths_a, tf.maximum(room - lengths_b, half))
        kept_b = tf.minimum(lengths_b, room - kept_a)
        separators = tf.RaggedTensor.from_row_lengths(
            tf.fill([tf.reduce_sum(ends)], self._vocabulary.sep_id), ends
        )
        second = tf.concat([_head(ids_b, kept_b), separators], axis=1)
        return self._dense([self._first(_head(ids_a, kept_a)), second])

    def _ids(self, texts: tf.Tensor) -> tf.RaggedTensor:
        return self._tokenizer(texts).with_row_splits_dtype(tf.int64)

    def _first(self, ids: tf.RaggedTensor) -> tf.RaggedTensor:
        special = (self._vocabulary.cls_id, self._vocabulary.sep_id)
        cls, sep = (tf.fill([ids.nrows(), 1], piece_id) for piece_id in special)
        return tf.concat([cls, ids, sep], axis=1)

    def _dense(self, segments: list[tf.RaggedTensor]) -> TextInputs:
        ids = tf.concat(segments, axis=1)
        numbers = [tf.fill(tf.shape(s.flat_values), n) for n, s in enumerate(segments)]
        places = [s.with_flat_values(n) for s, n in zip(segments, numbers, strict=True)]
        return TextInputs(
            input_ids=ids.to_tensor(self._vocabulary.pad_id),
            input_mask=tf.ones_like(ids).to_tensor(0),
            segment_ids=tf.concat(places, axis=1).to_tensor(0),
        )


def _head(ids: tf.RaggedTensor, lengths: tf.Tensor) -> tf.RaggedTensor:
    """The first `lengths[i]` ids of row i."""
    return tf.gather(ids, tf.ragged.range(lengths), batch_dims=1)
