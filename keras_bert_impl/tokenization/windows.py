"""Windows over texts that are longer than a model's input, and which window owns which token.

Every task makes its windows here: questions over a passage, tags over a document, labels of a long
text. `graph_rows` does the same inside a TensorFlow graph, for serving.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keras_bert_impl.errors import UserError

Numbers = NDArray[np.int64]


class Windows(NamedTuple):
    """Windows over the tokens of some documents, in the order of the documents and of the text.

    Attributes:
        document: int64 [windows], the number of the document.
        start: int64 [windows], the position of its first token in the document.
        end: int64 [windows], the position after its last token.
    """

    document: Numbers
    start: Numbers
    end: Numbers

    @property
    def lengths(self) -> Numbers:
        """The tokens of each window: int64 [windows]."""
        return self.end - self.start

    def is_first(self) -> NDArray[np.bool_]:
        """Whether each window is the first one of its document: bool [windows]."""
        return self.start == 0

    def is_last(self) -> NDArray[np.bool_]:
        """Whether each window is the last one of its document: bool [windows]."""
        following = np.append(self.document[1:], -1)
        return self.document != following


def make_windows(lengths: ArrayLike, size: ArrayLike, stride: int) -> Windows:
    """Covers documents with windows that overlap, as the original does for SQuAD.

    A window starts `stride` tokens after the one before it (or `size`, where that is less); the
    first one that reaches the end of the document is the last one. A document without tokens has
    one empty window, so that no document is lost.

    Args:
        lengths: int [documents], the tokens of each document.
        size: the most tokens of a window; a number, or int [documents].

    Example:
        >>> windows = make_windows([7, 0, 3], size=4, stride=2)
        >>> windows.document.tolist(), windows.start.tolist(), windows.end.tolist()
        ([0, 0, 0, 1, 2], [0, 2, 4, 0, 0], [4, 6, 7, 0, 3])
    """
    totals = np.asarray(lengths, np.int64)
    sizes = np.broadcast_to(np.asarray(size, np.int64), totals.shape)
    check_stride(stride)
    if (sizes < 1).any():
        raise UserError("`max_seq_length` leaves no token for a window of the text; raise it.")
    steps = np.minimum(sizes, stride)
    # -(-x // y) is x / y rounded up, in whole numbers.
    counts = 1 + -(-np.maximum(totals - sizes, 0) // steps)  # [documents]
    document = np.repeat(np.arange(len(totals)), counts)
    number = np.arange(len(document)) - np.repeat(np.cumsum(counts) - counts, counts)
    start = number * steps[document]
    return Windows(document, start, np.minimum(start + sizes[document], totals[document]))


def check_stride(stride: int) -> None:
    """Refuses a stride that does not advance."""
    if stride < 1:
        raise UserError(f"`doc_stride={stride}` never reaches the next window; give 1 or more.")


def window_tokens(windows: Windows) -> tuple[Numbers, Numbers]:
    """Lists all tokens of all windows, one after the other.

    Returns:
        The number of the window and the position in the document of each token: two int64
        [tokens of all windows].

    Example:
        >>> number, position = window_tokens(make_windows([3], size=2, stride=1))
        >>> number.tolist(), position.tolist()
        ([0, 0, 1, 1], [0, 1, 1, 2])
    """
    lengths = windows.lengths
    number = np.repeat(np.arange(len(lengths)), lengths)
    inside = np.arange(len(number)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return number, windows.start[number] + inside


def owned_tokens(windows: Windows) -> NDArray[np.bool_]:
    """Tells which window owns each token: the one that shows most of the text around it.

    The context of a token in a window is the smaller of the numbers of tokens to its left and to
    its right, plus a hundredth of the window's length; the first window with the largest context
    owns the token, as in the original's SQuAD features.

    Returns:
        bool [tokens of all windows], in the order of `window_tokens`; every token of a document is
        owned once.

    Example:
        >>> windows = make_windows([6], size=4, stride=2)
        >>> owned_tokens(windows).tolist()
        [True, True, True, False, False, True, True, True]
    """
    if not len(windows.document):
        return np.zeros(0, np.bool_)
    number, position = window_tokens(windows)
    left = position - windows.start[number]
    right = windows.end[number] - 1 - position
    # The sum is one of float64 values, as in the original, so that its ties are ours.
    context = np.minimum(left, right) + 0.01 * windows.lengths[number]
    token = _token_numbers(windows)[number] + position  # over all documents
    best = np.zeros(int(token.max(initial=-1)) + 1)
    np.maximum.at(best, token, context)
    candidates = np.flatnonzero(context == best[token])
    owner = np.empty(len(best), np.int64)
    owner[token[candidates[::-1]]] = candidates[::-1]  # the first candidate is written last
    owned = np.zeros(len(token), np.bool_)
    owned[owner] = True
    return owned


def _token_numbers(windows: Windows) -> Numbers:
    """The number of the first token of each window's document, counted over all documents."""
    last = windows.is_last()
    lengths = np.zeros(int(windows.document[-1]) + 1, np.int64)
    lengths[windows.document[last]] = windows.end[last]
    return (np.cumsum(lengths) - lengths)[windows.document]
