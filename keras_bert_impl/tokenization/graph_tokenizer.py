"""The tokenizer as a Keras layer, for `tf.data` and for SavedModels that take raw text."""

from typing import Any

import keras
import tensorflow as tf

from keras_bert_impl.tokenization.kernel_models import load_kernel_models
from keras_bert_impl.tokenization.line_cutting import LineCutter
from keras_bert_impl.tokenization.tokenizer import SpecialTokens
from keras_bert_impl.tokenization.vocabulary import Vocabulary


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class GraphTokenizer(keras.layers.Layer):
    """Cuts a batch of lines into ids inside a graph: the same ids as `Tokenizer` gives.

    The vocabulary becomes a part of the graph, so that a SavedModel needs no other file. The
    process that loads it must have imported `tensorflow_text`, which brings the kernels.

    Args:
        vocabulary: the pieces, or a list of them.
        do_lower_case: see `Tokenizer`.
        strip_accents: see `Tokenizer`.
        special_tokens: see `Tokenizer`.
        with_spans: whether a call gives the places of the tokens as well.

    Example:
        >>> pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "word", "##s", "."]
        >>> GraphTokenizer(Vocabulary(pieces))(tf.constant(["The words.", "the"])).to_list()
        [[5, 6, 7, 8], [5]]
    """

    def __init__(
        self,
        vocabulary: Vocabulary | list[str],
        do_lower_case: bool = True,
        strip_accents: bool | None = None,
        special_tokens: SpecialTokens = "split",
        with_spans: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**{"trainable": False, "autocast": False, **kwargs})
        self._convert_input_args = False  # strings and ragged tensors pass as they are
        self._allow_non_tensor_positional_args = True
        self.vocabulary = (
            vocabulary if isinstance(vocabulary, Vocabulary) else Vocabulary(vocabulary)
        )
        self.do_lower_case = do_lower_case
        self.strip_accents = do_lower_case if strip_accents is None else strip_accents
        self.special_tokens, self.with_spans = special_tokens, with_spans
        self._models = load_kernel_models(self.vocabulary, do_lower_case, self.strip_accents)
        self._cutter = LineCutter(self._models, self.vocabulary, special_tokens == "keep")
        self.built = True

    def call(self, lines: Any) -> Any:
        """Cuts lines.

        Args:
            lines: UTF-8, string [batch].

        Returns:
            ids, ragged int32 [batch, (tokens)]; with `with_spans` a triple of ids, starts and ends,
            the latter two in bytes of the lines, ragged int64 [batch, (tokens)].
        """
        pieces = self._cutter.cut(
            tf.convert_to_tensor(lines, tf.string),
            tf.constant(self._models.normalizer),
            tf.constant(self._models.wordpiece),
            self.with_spans,
        )
        ids, starts, ends = (
            tf.RaggedTensor.from_row_splits(values, pieces.row_splits, validate=False)
            for values in (tf.cast(pieces.ids, tf.int32), pieces.starts, pieces.ends)
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
        return {
            **super().get_config(),
            "vocabulary": list(self.vocabulary.pieces),
            "do_lower_case": self.do_lower_case,
            "strip_accents": self.strip_accents,
            "special_tokens": self.special_tokens,
            "with_spans": self.with_spans,
        }
