"""Windows over long texts inside a TensorFlow graph: the same as `windows` makes."""

from typing import Any, NamedTuple

import tensorflow as tf

from keras_bert_impl.tokenization.windows import check_stride


class GraphWindows(NamedTuple):
    """Windows over the tokens of some documents; see `windows.Windows`.

    Attributes:
        document: int64 [windows], the number of the document.
        start: int64 [windows], the position of its first token in the document.
        end: int64 [windows], the position after its last token.
    """

    document: tf.Tensor
    start: tf.Tensor
    end: tf.Tensor

    def is_first(self) -> tf.Tensor:
        """Whether each window is the first one of its document: bool [windows]."""
        return self.start == 0

    def is_last(self) -> tf.Tensor:
        """Whether each window is the last one of its document: bool [windows]."""
        following = tf.concat([self.document[1:], [-1]], axis=0)
        return self.document != following[: tf.shape(self.document)[0]]


def windows_in_graph(lengths: Any, size: Any, stride: int) -> GraphWindows:
    """Covers documents with windows that overlap; see `windows.make_windows`.

    Args:
        lengths: int [documents], the tokens of each document.
        size: the most tokens of a window, 1 or more; a number, or int [documents].
        stride: tokens from the start of a window to the start of the next one.

    Raises:
        UserError: `stride` is less than 1.

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
    return GraphWindows(document, start, end)


def window_contents(tokens: tf.RaggedTensor, windows: GraphWindows) -> tf.RaggedTensor:
    """Gives the tokens (or what else there is of each token) of every window.

    Args:
        tokens: [documents, (tokens)].
        windows: over these documents.

    Returns:
        [windows, (tokens)].

    Example:
        >>> tokens = tf.ragged.constant([[5, 6, 7]])
        >>> window_contents(tokens, windows_in_graph([3], size=2, stride=1)).to_list()
        [[5, 6], [6, 7]]
    """
    first = tf.gather(tf.cast(tokens.row_splits, tf.int64), windows.document)
    positions = tf.ragged.range(first + windows.start, first + windows.end)
    return tf.gather(tokens.flat_values, positions)


def owned_in_graph(windows: GraphWindows) -> tf.RaggedTensor:
    """Tells which window owns each token; see `windows.owned_tokens`.

    Returns:
        bool [windows, (tokens)].

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
