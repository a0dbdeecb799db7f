"""Texts, pairs of texts and masked texts as a model's inputs, inside a TensorFlow graph."""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from keras_bert_impl.tokenization.graph_tokenizer import pack_in_graph
from keras_bert_impl.tokenization.preprocessor import NAMES, trim_to_longest
from keras_bert_impl.tokenization.vocabulary import Vocabulary

GraphTokenize = Callable[[tf.Tensor], tf.RaggedTensor]


class TextPacker:
    """Tokenizes and packs `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`, as in training.

    Rows are as long as the longest of the batch: a served text is seldom near the limit. A second
    text without tokens counts as none.

    Args:
        tokenizer: takes strings [n] and gives ragged int32 ids [n, (tokens)].
        vocabulary: knows the ids of the special tokens.
        max_length: the most tokens of a row; longer texts are truncated.

    Example:
        >>> tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]
        >>> packer = TextPacker(lambda texts: tf.ragged.constant([[5, 6]]), Vocabulary(tokens), 9)
        >>> [array.numpy().tolist() for array in packer(tf.constant(["a b"]))]
        [[[2, 5, 6, 3]], [[1, 1, 1, 1]], [[0, 0, 0, 0]]]
    """

    def __init__(self, tokenizer: GraphTokenize, vocabulary: Vocabulary, max_length: int) -> None:
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._max_length = max_length

    def __call__(self, texts_a: tf.Tensor, texts_b: tf.Tensor | None = None) -> list[tf.Tensor]:
        """Packs a batch of texts or pairs, strings [batch].

        Returns:
            input_ids, input_mask and segment_ids, int32 [batch, length].
        """
        ids_a = self._tokenizer(texts_a)
        ids_b = None if texts_b is None else self._tokenizer(texts_b)
        packed = pack_in_graph(ids_a, ids_b, self._max_length, self._vocabulary)
        trimmed = trim_to_longest(packed)
        return [trimmed[name] for name in NAMES]


class MaskedInputs(NamedTuple):
    """What the model reads for a batch of texts, and where its answers belong.

    Attributes:
        input_ids: int32 [batch, length].
        input_mask: int32 [batch, length], 1 for a token and 0 for padding.
        segment_ids: int32 [batch, length], zeros.
        masked_lm_positions: int32 [batch, masks]: where each [MASK] stands; padded with 0.
        mask_counts: int32 [batch]: how many of a text's positions are real.
        num_truncated: int32 [batch]: tokens of a long text that the model does not see.
    """

    input_ids: tf.Tensor
    input_mask: tf.Tensor
    segment_ids: tf.Tensor
    masked_lm_positions: tf.Tensor
    mask_counts: tf.Tensor
    num_truncated: tf.Tensor


class MaskedTextPacker:
    """Tokenizes texts with [MASK] in them and packs `[CLS] text [SEP]`.

    A text that is too long keeps the tokens around its first [MASK].

    Args:
        tokenizer: takes strings [n] and gives ragged int32 ids [n, (tokens)], where [MASK] is one.
        vocabulary: knows the ids of the special tokens.
        max_length: the most tokens of a row.

    Example:
        >>> tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]
        >>> tokenizer = lambda texts: tf.ragged.constant([[5, 5, 5, 4, 6]])
        >>> packer = MaskedTextPacker(tokenizer, Vocabulary(tokens), max_length=5)
        >>> packed = packer(tf.constant(["a a a [MASK] b"]))
        >>> packed.input_ids.numpy().tolist(), packed.masked_lm_positions.numpy().tolist()
        ([[2, 5, 4, 6, 3]], [[2]])
    """

    def __init__(self, tokenizer: GraphTokenize, vocabulary: Vocabulary, max_length: int) -> None:
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._budget = max_length - 2  # for [CLS] and [SEP]

    def __call__(self, texts: tf.Tensor) -> MaskedInputs:
        """Packs a batch of texts, strings [batch]."""
        vocabulary, rows = self._vocabulary, tf.shape(texts)[0]
        tokens = self._tokenizer(texts).with_row_splits_dtype(tf.int64)
        kept = self._around_first_mask(tokens)
        ids = tf.concat(
            [tf.fill([rows, 1], vocabulary.cls_id), kept, tf.fill([rows, 1], vocabulary.sep_id)],
            axis=1,
        )
        positions = tf.ragged.range(ids.row_lengths())  # [batch, (length)]
        masked = tf.ragged.boolean_mask(positions, ids == vocabulary.mask_id)
        input_ids = ids.to_tensor(vocabulary.pad_id)
        return MaskedInputs(
            input_ids=input_ids,
            input_mask=tf.ones_like(ids).to_tensor(0),
            segment_ids=tf.zeros_like(input_ids),
            masked_lm_positions=tf.cast(masked.to_tensor(0), tf.int32),
            mask_counts=tf.cast(masked.row_lengths(), tf.int32),
            num_truncated=tf.cast(tokens.row_lengths() - kept.row_lengths(), tf.int32),
        )

    def _around_first_mask(self, tokens: tf.RaggedTensor) -> tf.RaggedTensor:
        """At most `_budget` tokens of each text, the first [MASK] in their middle."""
        lengths = tokens.row_lengths()
        positions = tf.ragged.range(lengths)
        masks = tf.ragged.boolean_mask(positions, tokens == self._vocabulary.mask_id)
        first = tf.minimum(tf.reduce_min(masks, axis=1), lengths)  # of no mask: the length
        last_start = tf.maximum(lengths - self._budget, 0)
        starts = tf.clip_by_value(first - self._budget // 2, tf.zeros_like(lengths), last_start)
        ends = tf.minimum(starts + self._budget, lengths)
        return tf.gather(tokens, tf.ragged.range(starts, ends), batch_dims=1)
