"""Texts and pairs of texts as a model's inputs, inside a TensorFlow graph."""

from collections.abc import Callable

import tensorflow as tf

from keras_bert_impl.tokenization.graph_packing import pack_in_graph
from keras_bert_impl.tokenization.vocabulary import Vocabulary

GraphTokenize = Callable[[tf.Tensor], tf.RaggedTensor]


class TextPacker:
    """Tokenizes and packs `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`, as in training.

    Rows are as long as the longest of the batch: a served text is seldom near the limit. A second
    text without pieces counts as none.

    Args:
        tokenizer: takes strings [n] and gives ragged int32 ids [n, (pieces)].
        vocabulary: knows the ids of the special pieces.
        max_length: the most pieces of a row; what is longer is cut.

    Example:
        >>> pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]
        >>> packer = TextPacker(lambda texts: tf.ragged.constant([[5, 6]]), Vocabulary(pieces), 9)
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
        lengths = tf.reduce_sum(packed["input_mask"], axis=1)
        longest = tf.maximum(tf.reduce_max(lengths), 1)  # 1: a batch may be empty
        return [packed[name][:, :longest] for name in ("input_ids", "input_mask", "segment_ids")]
