"""Keras layers that take strings: texts into ids, and into the inputs of a model."""

from typing import Any, Self

import keras
import numpy as np
import tensorflow as tf

from keras_bert_impl.errors import UserError, check_kind
from keras_bert_impl.json_files import argument
from keras_bert_impl.tokenization.cutting import LineCutter
from keras_bert_impl.tokenization.graph_rows import pack_in_graph, trim_to_longest
from keras_bert_impl.tokenization.kernel_models import load_kernel_models
from keras_bert_impl.tokenization.long_texts import HEAD_TAIL, TRUNCATE
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from keras_bert_impl.tokenization.text_settings import REMEDY, Casing, TextSettings
from keras_bert_impl.tokenization.tokenizer import LENGTH, PackingAsTrained, SpecialTokens
from keras_bert_impl.tokenization.vocabulary import Vocabulary


class StringLayer(keras.layers.Layer):
    """A layer without weights that takes strings; it saves its `TextSettings` with itself."""

    def __init__(
        self, settings: TextSettings, special_tokens: SpecialTokens = "split", **kwargs: Any
    ) -> None:
        check_kind(settings, TextSettings, REMEDY)
        argument("special_tokens", special_tokens, SpecialTokens)
        super().__init__(**{"trainable": False, "autocast": False, **kwargs})
        self._convert_input_args = False  # strings and ragged tensors pass as they are
        self._allow_non_tensor_positional_args = True
        self.settings, self.special_tokens = settings, special_tokens
        self.built = True

    def get_config(self) -> dict[str, Any]:
        """The arguments that make this layer again."""
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
        casing = Casing.taken_from(values)
        return cls(casing.settings(Vocabulary(values.pop("vocabulary"))), **values)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class GraphTokenizer(StringLayer):
    """Cuts a batch of lines into ids inside a graph: the same ids as `Tokenizer` gives.

    The vocabulary becomes a part of the graph, so that a SavedModel needs no other file. The
    process that loads it must have imported `tensorflow_text`, which brings the kernels.

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
        self._cutter = LineCutter(self._models, settings, special_tokens == "keep")

    def call(self, lines: Any) -> Any:
        """Cuts lines.

        Returns:
            ids, ragged int32 [batch, (tokens)]; with `with_spans` a triple of ids, starts and ends,
            the latter two in bytes of the lines, ragged int64 [batch, (tokens)].
        """
        lines = tf.convert_to_tensor(lines, tf.string)
        if lines.shape.rank not in (1, None):  # of a scalar the kernels read what is not there
            raise UserError(f"lines of shape {lines.shape} are not [batch]; give a list of lines.")
        # The models are constants of the graph that is traced: a SavedModel has them in itself.
        tokens = self._cutter.cut(
            lines,
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
        """The outputs of a symbolic call."""
        batch = lines.shape[0]
        ids = keras.KerasTensor((batch, None), "int32", ragged=True)
        spans = [keras.KerasTensor((batch, None), "int64", ragged=True) for _ in range(2)]
        return (ids, *spans) if self.with_spans else ids

    def get_config(self) -> dict[str, Any]:
        """The arguments that make this layer again."""
        return {**super().get_config(), "with_spans": self.with_spans}


_TENSORS = (tf.Tensor, np.ndarray, keras.KerasTensor)
_LENGTH = 128


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertPreprocessor(PackingAsTrained, StringLayer):
    """Turns texts, or pairs of texts, into what the models take: `[CLS] A [SEP] B [SEP]`.

    Use it in `tf.data` (`dataset.map`, before or after `batch`), or in a model before the encoder,
    so that the model takes strings. It gives what `Tokenizer` gives and runs on the CPU.
    A process that loads an exported model with it must have imported `tensorflow_text`.

    Args:
        settings: the vocabulary, the casing and the accents.
        max_seq_length: longer texts are shortened to this many tokens, [CLS] and [SEP] included.
        pad_to_longest: whether rows are as long as the longest of the batch, not `max_seq_length`.
        special_tokens: see `Tokenizer`.
        long_text: what stays of a longer text: "truncate" keeps its beginning, "head_tail" both
            ends.

    Raises:
        UserError: `max_seq_length` has no room for the special tokens, or longer texts are to be
            read in windows.

    Example:
        >>> from keras_bert_impl.tokenization.vocabulary import Vocabulary
        >>> tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "word", "##s", "."]
        >>> preprocessor = BertPreprocessor(TextSettings(Vocabulary(tokens)), max_seq_length=6)
        >>> preprocessor(tf.constant(["The words", "the"]))["input_ids"].numpy().tolist()
        [[2, 5, 6, 7, 3, 0], [2, 5, 3, 0, 0, 0]]
        >>> preprocessor(["the"], ["word"])["segment_ids"].numpy().tolist()
        [[0, 0, 0, 1, 1, 0]]
    """

    _usual_length = _LENGTH

    def __init__(
        self,
        settings: TextSettings,
        max_seq_length: int = _LENGTH,
        pad_to_longest: bool = False,
        special_tokens: SpecialTokens = "split",
        long_text: str = TRUNCATE,
        **kwargs: Any,
    ) -> None:
        if long_text not in (TRUNCATE, HEAD_TAIL):
            raise UserError(
                f"`long_text={long_text}`: this layer makes one row of each text, and windows are "
                f'several; ask `Predictor`, or give `long_text="{TRUNCATE}"` where texts are short.'
            )
        argument("max_seq_length", max_seq_length, LENGTH)
        super().__init__(settings, special_tokens, **kwargs)
        self.max_seq_length, self.pad_to_longest = max_seq_length, pad_to_longest
        self.long_text = long_text
        self._tokenizer = GraphTokenizer(settings, special_tokens)

    def call(self, texts: Any, text_pairs: Any = None) -> dict[str, Any]:
        """Tokenizes and packs.

        Args:
            texts: UTF-8, strings [batch] or [batch, 1], or one string (a scalar); or pairs: a
                tuple of two such tensors, or a list of tuples of two strings.
            text_pairs: the second texts of pairs, if they are given apart; of the same shape.

        Returns:
            `input_ids`, `input_mask` and `segment_ids`, int32 [batch, length] each, or [length]
            for one string.

        Raises:
            UserError: the strings have another shape, or the second texts another than the first.
        """
        texts, text_pairs = _first_and_second(texts, text_pairs)
        texts = tf.convert_to_tensor(texts, tf.string)
        if text_pairs is not None:
            text_pairs = tf.convert_to_tensor(text_pairs, tf.string)
        _check_shapes(texts, text_pairs)
        packed = pack_in_graph(
            self._ids(texts),
            None if text_pairs is None else self._ids(text_pairs),
            self.max_seq_length,
            self.settings.vocabulary,
            self.long_text,
        )
        if self.pad_to_longest:
            packed = trim_to_longest(packed)
        if texts.shape.rank == 0:
            return {name: rows[0] for name, rows in packed.items()}
        return packed

    def _ids(self, texts: tf.Tensor) -> tf.RaggedTensor:
        return self._tokenizer(tf.reshape(texts, [-1]))

    def compute_output_spec(self, texts: Any, text_pairs: Any = None) -> dict[str, Any]:
        """The outputs of a symbolic call."""
        texts, text_pairs = _first_and_second(texts, text_pairs)
        _check_shapes(texts, text_pairs)
        length = None if self.pad_to_longest else self.max_seq_length
        shape = (*texts.shape[:1], length)
        return {name: keras.KerasTensor(shape, "int32") for name in ENCODER_INPUTS}

    def get_config(self) -> dict[str, Any]:
        """The arguments that make this layer again."""
        return {
            **super().get_config(),
            "max_seq_length": self.max_seq_length,
            "pad_to_longest": self.pad_to_longest,
            # Left out where it is usual: older files have no such key.
            **({} if self.long_text == TRUNCATE else {"long_text": self.long_text}),
        }


def _first_and_second(texts: Any, text_pairs: Any) -> tuple[Any, Any]:
    """The first texts, and the second ones or None, of every form that has one meaning."""
    if text_pairs is not None or not isinstance(texts, (tuple, list)):
        return texts, text_pairs
    if len(texts) == 2 and all(isinstance(part, _TENSORS) for part in texts):
        return texts[0], texts[1]
    # A tuple of two texts is a pair, as for `Tokenizer`; a list of two is a batch of two.
    if isinstance(texts, tuple) and len(texts) == 2:
        if any(isinstance(part, list) for part in texts):
            raise UserError(
                "a tuple of lists may mean two columns or two pairs; give the first and the second "
                "texts apart: preprocessor(firsts, seconds)."
            )
        if not any(isinstance(part, tuple) for part in texts):
            return texts[0], texts[1]
    if texts and all(isinstance(row, (tuple, list)) and len(row) == 2 for row in texts):
        return [row[0] for row in texts], [row[1] for row in texts]
    return texts, None


def _check_shapes(texts: Any, text_pairs: Any) -> None:
    for given in (texts, text_pairs):
        shape = None if given is None else tf.TensorShape(given.shape)
        if shape is not None and (shape.rank or 0) > 1 and shape.as_list()[1:] != [1]:
            raise UserError(
                f"texts of shape {shape.as_list()} are neither [batch] nor [batch, 1]; give pairs "
                "as two tensors: preprocessor(firsts, seconds)."
            )
    if text_pairs is not None:
        first, second = (tf.TensorShape(given.shape) for given in (texts, text_pairs))
        if not first[:1].is_compatible_with(second[:1]):
            raise UserError(
                f"the texts have the shape {first.as_list()}, but the second texts "
                f"{second.as_list()}; give as many."
            )
