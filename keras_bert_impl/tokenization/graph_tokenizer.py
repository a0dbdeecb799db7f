"""Tokenizing and packing inside a TensorFlow graph."""

from typing import Any, Self

import keras
import tensorflow as tf

from keras_bert_impl.tokenization.cutting import LineCutter
from keras_bert_impl.tokenization.kernel_models import load_kernel_models
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import SpecialTokens
from keras_bert_impl.tokenization.truncation import truncated_lengths_in_graph
from keras_bert_impl.tokenization.vocabulary import Vocabulary


def pack_in_graph(
    ids_a: tf.RaggedTensor,
    ids_b: tf.RaggedTensor | None,
    max_seq_length: int,
    vocabulary: Vocabulary,
) -> dict[str, Any]:
    """Packs one segment or two a row: [CLS] A [SEP] B [SEP], truncated as in the original.

    A row without ids of a second segment is [CLS] A [SEP], as in training.

    Args:
        ids_a: int32 [batch, (length)].
        ids_b: int32 [batch, (length)], or None for one segment in every row.
        max_seq_length: the length of the rows.
        vocabulary: has the special tokens.

    Returns:
        `input_ids`, `input_mask` and `segment_ids`, int32 [batch, max_seq_length] each.

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
    kept_a, kept_b = truncated_lengths_in_graph(lengths_a, lengths_b, max_seq_length - 2 - has_b)
    batch = tf.shape(lengths_a)[0]
    cls, sep = (tf.fill([batch, 1], number) for number in (vocabulary.cls_id, vocabulary.sep_id))
    parts = [cls, _first(ids_a, kept_a), sep]
    if ids_b is not None:
        end_of_b = tf.RaggedTensor.from_tensor(sep, lengths=has_b)
        parts += [_first(ids_b, kept_b), end_of_b]
    packed = tf.concat(parts, axis=1)  # [batch, (length)]
    lengths = tf.cast(packed.row_lengths(), tf.int32)[:, tf.newaxis]
    positions = tf.range(max_seq_length)[tf.newaxis]  # [1, max_seq_length]
    in_use = positions < lengths
    in_b = in_use & (positions >= kept_a[:, tf.newaxis] + 2)
    return {
        "input_ids": packed.to_tensor(vocabulary.pad_id, shape=[None, max_seq_length]),
        "input_mask": tf.cast(in_use, tf.int32),
        "segment_ids": tf.cast(in_b, tf.int32),
    }


def _first(rows: tf.RaggedTensor, counts: Any) -> tf.RaggedTensor:
    keep = tf.sequence_mask(counts, tf.cast(rows.bounding_shape(axis=1), tf.int32))
    return tf.ragged.boolean_mask(rows, _as_ragged(keep, rows))


def _as_ragged(mask: Any, rows: tf.RaggedTensor) -> tf.RaggedTensor:
    return tf.RaggedTensor.from_tensor(mask, lengths=rows.row_lengths())


class StringLayer(keras.layers.Layer):
    """A layer without weights that takes strings; it saves its `TextSettings` with itself.

    Args:
        settings: the vocabulary, the casing and the accents.
        special_tokens: see `Tokenizer`.
    """

    def __init__(
        self, settings: TextSettings, special_tokens: SpecialTokens = "split", **kwargs: Any
    ) -> None:
        super().__init__(**{"trainable": False, "autocast": False, **kwargs})
        self._convert_input_args = False  # strings and ragged tensors pass as they are
        self._allow_non_tensor_positional_args = True
        self.settings, self.special_tokens = settings, special_tokens
        self.built = True

    def get_config(self) -> dict[str, Any]:
        """What makes the same layer again."""
        return {
            **super().get_config(),
            "vocabulary": list(self.settings.vocabulary.tokens),
            **self.settings.as_json(),
            "special_tokens": self.special_tokens,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Makes the layer that `get_config` described."""
        values = dict(config)
        settings = TextSettings(
            Vocabulary(values.pop("vocabulary")),
            values.pop("do_lower_case"),
            values.pop("strip_accents"),
        )
        return cls(settings, **values)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class GraphTokenizer(StringLayer):
    """Cuts a batch of lines into ids inside a graph: the same ids as `Tokenizer` gives.

    The vocabulary becomes a part of the graph, so that a SavedModel needs no other file. The
    process that loads it must have imported `tensorflow_text`, which brings the kernels.

    Args:
        settings: the vocabulary, the casing and the accents.
        special_tokens: see `Tokenizer`.
        with_spans: whether a call gives the spans of the tokens as well.

    Example:
        >>> tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "word", "##s", "."]
        >>> tokenizer = GraphTokenizer(TextSettings(Vocabulary(tokens)))
        >>> tokenizer(tf.constant(["The words.", "the"])).to_list()
        [[5, 6, 7, 8], [5]]
    """

    def __init__(
        self,
        settings: TextSettings,
        special_tokens: SpecialTokens = "split",
        with_spans: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(settings, special_tokens, **kwargs)
        self.with_spans = with_spans
        self._models = load_kernel_models(settings)
        self._cutter = LineCutter(self._models, settings.vocabulary, special_tokens == "keep")

    def call(self, lines: Any) -> Any:
        """Cuts lines.

        Args:
            lines: UTF-8, string [batch].

        Returns:
            ids, ragged int32 [batch, (tokens)]; with `with_spans` a triple of ids, starts and ends,
            the latter two in bytes of the lines, ragged int64 [batch, (tokens)].
        """
        tokens = self._cutter.cut(
            tf.convert_to_tensor(lines, tf.string),
            tf.constant(self._models.normalizer),
            tf.constant(self._models.wordpiece),
            self.with_spans,
        )
        ids, starts, ends = (
            tf.RaggedTensor.from_row_splits(values, tokens.row_splits, validate=False)
            for values in (tf.cast(tokens.ids, tf.int32), tokens.starts, tokens.ends)
        )
        return (ids, starts, ends) if self.with_spans else ids

    def compute_output_spec(self, lines: Any) -> Any:
        """What a symbolic call gives."""
        batch = lines.shape[0]
        ids = keras.KerasTensor((batch, None), "int32", ragged=True)
        spans = [keras.KerasTensor((batch, None), "int64", ragged=True) for _ in range(2)]
        return (ids, *spans) if self.with_spans else ids

    def get_config(self) -> dict[str, Any]:
        """What makes the same layer again."""
        return {**super().get_config(), "with_spans": self.with_spans}
