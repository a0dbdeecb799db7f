"""What a model reads of questions, inside a TensorFlow graph: the rows of `question_rows`."""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from keras_bert_impl.tokenization.graph_tokenizer import pack_in_graph
from keras_bert_impl.tokenization.graph_windows import (
    GraphWindows,
    owned_in_graph,
    window_contents,
    windows_in_graph,
)
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from keras_bert_impl.tokenization.preprocessor import trim_to_longest
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.tasks.questions.question_rows import WindowSettings

GraphTokenizeWithSpans = Callable[[tf.Tensor], tuple[Any, Any, Any]]


class GraphRows(NamedTuple):
    """Rows of some questions, and what undoes them.

    Attributes:
        inputs: input_ids, input_mask and segment_ids, int32 [rows, length].
        question: int64 [rows], the number of the question; never falling.
        offset: int64 [rows], where the passage begins in a row.
        windows: over the passages.
        passage_from: int64 [rows], where the passage of a row begins in `text_start`.
        owned: bool [rows, (tokens of the window)], whether a row shows most around a token.
        text_start: int64 [tokens of all passages], where a token begins, in bytes of its passage.
        text_end: int64 [tokens of all passages], where it ends.
    """

    inputs: list[tf.Tensor]
    question: tf.Tensor
    offset: tf.Tensor
    windows: GraphWindows
    passage_from: tf.Tensor
    owned: tf.RaggedTensor
    text_start: tf.Tensor
    text_end: tf.Tensor

    def is_of_passage(self, positions: tf.Tensor) -> tf.Tensor:
        """Whether positions [rows, n] of each row are tokens of its passage: bool [rows, n]."""
        inside = positions - self.offset[:, tf.newaxis]
        size = (self.windows.end - self.windows.start)[:, tf.newaxis]
        return (inside >= 0) & (inside < size)

    def is_owned(self, positions: tf.Tensor) -> tf.Tensor:
        """Whether these are tokens of the passage that their row owns: bool [rows, n]."""
        inside = positions - self.offset[:, tf.newaxis] + self.owned.row_starts()[:, tf.newaxis]
        owned = tf.concat([self.owned.flat_values, [False]], axis=0)  # there may be no token
        return tf.gather(owned, tf.where(self.is_of_passage(positions), inside, -1 + _size(owned)))

    def tokens(self, rows: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        """The tokens at positions int64 [n] of rows int64 [n]: their numbers in `text_start`."""
        first = self.passage_from + self.windows.start - self.offset  # [rows]
        return tf.gather(first, rows) + positions


def _size(array: tf.Tensor) -> tf.Tensor:
    return tf.size(array, out_type=tf.int64)


class QuestionPacker:
    """Packs questions with windows of their passages; see `question_rows`.

    Args:
        tokenizer: takes strings [n]; gives ids, starts and ends, ragged [n, (tokens)].
        vocabulary: knows the ids of the special tokens.
        settings: lengths and stride.
    """

    def __init__(
        self, tokenizer: GraphTokenizeWithSpans, vocabulary: Vocabulary, settings: WindowSettings
    ) -> None:
        self._tokenizer, self._vocabulary = tokenizer, vocabulary
        self._settings = settings

    def __call__(self, questions: tf.Tensor, passages: tf.Tensor) -> GraphRows:
        """Packs questions and passages, strings [batch] each."""
        settings = self._settings
        asked = self._tokenizer(questions)[0][:, : settings.max_query_length]
        asked = asked.with_row_splits_dtype(tf.int64)
        ids, starts, ends = self._tokenizer(passages)
        ids = ids.with_row_splits_dtype(tf.int64)
        room = settings.max_seq_length - asked.row_lengths() - 3  # [CLS], [SEP] and [SEP]
        windows = windows_in_graph(ids.row_lengths(), room, settings.doc_stride)
        shown = window_contents(ids, windows)  # [rows, (tokens)]
        asked = tf.gather(asked, windows.document)
        packed = pack_in_graph(asked, shown, settings.max_seq_length, self._vocabulary)
        trimmed = trim_to_longest(packed)
        return GraphRows(
            inputs=[trimmed[name] for name in ENCODER_INPUTS],
            question=windows.document,
            offset=asked.row_lengths() + 2,
            windows=windows,
            passage_from=tf.gather(ids.row_starts(), windows.document),
            owned=owned_in_graph(windows).with_row_splits_dtype(tf.int64),
            text_start=starts.flat_values,
            text_end=ends.flat_values,
        )
