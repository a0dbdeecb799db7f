"""Texts, pairs of texts and masked texts as a model's inputs, inside a TensorFlow graph.

Long texts are packed, and the logits of their windows joined, as in training.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from keras_bert_impl.tokenization.graph_tokenizer import pack_in_graph
from keras_bert_impl.tokenization.graph_windows import window_contents, windows_in_graph
from keras_bert_impl.tokenization.long_texts import (
    HEAD_TAIL,
    MAX,
    LongTexts,
    head_length,
    window_room_in_graph,
)
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from keras_bert_impl.tokenization.preprocessor import trim_to_longest
from keras_bert_impl.tokenization.truncation import truncated_lengths_in_graph
from keras_bert_impl.tokenization.vocabulary import Vocabulary

GraphTokenize = Callable[[tf.Tensor], tf.RaggedTensor]


class TextRows(NamedTuple):
    """What the model reads for a batch of texts.

    Attributes:
        inputs: input_ids, input_mask and segment_ids, int32 [rows, length].
        text: int64 [rows], the number of the text that a row is of; never falling.
    """

    inputs: list[tf.Tensor]
    text: tf.Tensor


class TextPacker:
    """Tokenizes and packs `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`, as in training.

    Rows are as long as the longest of the batch: a served text is seldom near the limit. A second
    text without tokens counts as none.

    Args:
        tokenizer: takes strings [n] and gives ragged int32 ids [n, (tokens)].
        vocabulary: knows the ids of the special tokens.
        max_seq_length: the most tokens of a row.
        long_texts: what becomes of longer texts; truncated by default.

    Example:
        >>> tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]
        >>> packer = TextPacker(lambda texts: tf.ragged.constant([[5, 5, 6]]),
        ...     Vocabulary(tokens), 4, LongTexts(long_text="windows", doc_stride=1))
        >>> rows = packer(tf.constant(["a a b"]))
        >>> rows.inputs[0].numpy().tolist(), rows.text.numpy().tolist()
        ([[2, 5, 5, 3], [2, 5, 6, 3]], [0, 0])
    """

    def __init__(
        self,
        tokenizer: GraphTokenize,
        vocabulary: Vocabulary,
        max_seq_length: int,
        long_texts: LongTexts | None = None,
    ) -> None:
        self._tokenizer, self._vocabulary = tokenizer, vocabulary
        self._max_seq_length, self._long_texts = max_seq_length, long_texts or LongTexts()

    def __call__(self, texts_a: tf.Tensor, texts_b: tf.Tensor | None = None) -> TextRows:
        """Packs a batch of texts or pairs, strings [batch]."""
        ids_a = self._ids(texts_a)
        ids_b = tf.zeros_like(ids_a)[:, :0] if texts_b is None else self._ids(texts_b)
        text = tf.range(tf.cast(tf.shape(texts_a)[0], tf.int64))
        if self._long_texts.has_windows:
            ids_a, ids_b, text = self._windows(ids_a, ids_b)
        elif self._long_texts.long_text == HEAD_TAIL:
            ids_a, ids_b = self._ends(ids_a, ids_b)
        packed = trim_to_longest(
            pack_in_graph(ids_a, ids_b, self._max_seq_length, self._vocabulary)
        )
        return TextRows([packed[name] for name in ENCODER_INPUTS], text)

    def _ids(self, texts: tf.Tensor) -> tf.RaggedTensor:
        return self._tokenizer(texts).with_row_splits_dtype(tf.int64)

    def _ends(self, ids_a: tf.RaggedTensor, ids_b: tf.RaggedTensor) -> tuple[Any, Any]:
        """The beginning and the end of what is too long."""
        lengths_a, lengths_b = ids_a.row_lengths(), ids_b.row_lengths()
        budget = self._max_seq_length - 2 - tf.cast(lengths_b > 0, tf.int64)
        kept_a, kept_b = truncated_lengths_in_graph(lengths_a, lengths_b, budget)
        return _head_and_tail(ids_a, kept_a), _head_and_tail(ids_b, kept_b)

    def _windows(self, ids_a: tf.RaggedTensor, ids_b: tf.RaggedTensor) -> tuple[Any, Any, Any]:
        """The two segments of every window, and the number of its text."""
        lengths_b = ids_b.row_lengths()
        has_b = tf.cast(lengths_b > 0, tf.int64)
        front, size = window_room_in_graph(ids_a.row_lengths(), lengths_b, self._max_seq_length)
        body = tf.concat([_first(ids_a, ids_a.row_lengths() * (1 - has_b)), ids_b], axis=1)
        windows = windows_in_graph(body.row_lengths(), size, self._long_texts.doc_stride)
        contents = window_contents(body, windows)  # [windows, (tokens)]
        in_b = tf.gather(has_b, windows.document)  # [windows]
        lengths = contents.row_lengths()
        # A window over a second text has the first one in front; else it is the first one.
        in_front = tf.gather(_first(ids_a, front), windows.document)
        first = tf.concat([in_front, _first(contents, lengths * (1 - in_b))], axis=1)
        return first, _first(contents, lengths * in_b), windows.document


def join_in_graph(logits: tf.Tensor, text: tf.Tensor, window_answers: str) -> tf.Tensor:
    """One answer a text: the mean of its windows' logits, or of each label the highest.

    Args:
        logits: float32 [rows, labels].
        text: int64 [rows], never falling; every text has a row.
        window_answers: "mean" or "max".

    Example:
        >>> logits = tf.constant([[0.0, 1.0], [2.0, 3.0], [5.0, 5.0]])
        >>> join_in_graph(logits, tf.constant([0, 0, 1]), "mean").numpy().tolist()
        [[1.0, 2.0], [5.0, 5.0]]
    """
    if window_answers == MAX:
        return tf.math.segment_max(logits, text)
    return tf.math.segment_mean(logits, text)


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


def _first(ids: tf.RaggedTensor, counts: tf.Tensor) -> tf.RaggedTensor:
    """The first `counts` tokens of each row."""
    return tf.gather(ids, tf.ragged.range(counts), batch_dims=1)


def _head_and_tail(ids: tf.RaggedTensor, kept: tf.Tensor) -> tf.RaggedTensor:
    lengths, head = ids.row_lengths(), head_length(kept)
    tail = tf.ragged.range(lengths - (kept - head), lengths)
    return tf.gather(ids, tf.concat([tf.ragged.range(head), tail], axis=1), batch_dims=1)
