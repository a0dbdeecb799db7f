"""Texts that are longer than a model's input: truncated, their two ends, or windows over all.

The same three ways exist for rows made in advance (`pipelines.fine_tuning.text_rows`) and inside a
served graph (`graph_rows`, `keras_bert_impl.serving.served_models`); what they have in common
stands here: also which window of several owns which token.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import Options, option

TRUNCATE, HEAD_TAIL, WINDOWS = "truncate", "head_tail", "windows"
MEAN, MAX = "mean", "max"

_HEAD_SHARE = 4
"""Of what stays, one part of so many is the text's beginning and the rest its end: 128 and 382 of
510 tokens did best in Sun et al., "How to Fine-Tune BERT for Text Classification?" (2019)."""


@dataclass(frozen=True, kw_only=True)
class LongTexts(Options):
    """The treatment of a text that is longer than `max_seq_length`.

    Example:
        >>> LongTexts(long_text="windows", doc_stride=64).settings
        {'long_text': 'windows', 'doc_stride': 64, 'window_answers': 'mean'}
        >>> LongTexts.from_settings({"task": "CoLA"})
        LongTexts(long_text='truncate', doc_stride=128, window_answers='mean')
    """

    long_text: str = option(
        TRUNCATE,
        "What to do with a text longer than a row: truncate (keep its beginning), head_tail (keep "
        "a quarter of the row from its beginning, the rest from its end), or windows over all of "
        "it, whose answers are joined into one.",
        choices=(TRUNCATE, HEAD_TAIL, WINDOWS),
    )
    doc_stride: int = option(
        128,
        "With windows over long texts: tokens from the start of a window to the start of the next.",
        at_least=1,
    )
    window_answers: str = option(
        MEAN,
        "How the logits of a text's windows become one answer: their mean, or of each label the "
        "highest (max).",
        choices=(MEAN, MAX),
    )

    @property
    def has_windows(self) -> bool:
        """Whether one text may become several rows."""
        return self.long_text == WINDOWS

    @property
    def settings(self) -> dict[str, Any]:
        """The entries of a model directory, as JSON values; none where texts are truncated."""
        if self.long_text == TRUNCATE:
            return {}
        if self.long_text == HEAD_TAIL:
            return {"long_text": HEAD_TAIL}
        return {
            "long_text": WINDOWS,
            "doc_stride": self.doc_stride,
            "window_answers": self.window_answers,
        }

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "LongTexts":
        """Reads `settings` again; other entries are left aside."""
        if "long_text" not in settings:  # another task may have a `doc_stride` of its own
            return cls()
        names = ("long_text", "doc_stride", "window_answers")
        return cls(**{name: settings[name] for name in names if name in settings})


def head_length(kept: Any) -> Any:
    """How many of the kept tokens are a text's first ones; the others are its last ones."""
    return kept // _HEAD_SHARE


def window_room(length_a: Any, length_b: Any, max_seq_length: int, xp: Any = np) -> tuple[Any, Any]:
    """Divides each row between a first text, which every window has, and the windows.

    The windows move over the second text; over the first one where there is no second. The first
    text of a pair keeps half of the room at least, and all that the second one leaves.

    Returns:
        The tokens of the first text in front of each window (0 where there is no
        second text), and the most tokens of a window: two int64 [documents].

    Example:
        >>> front, size = window_room(np.array([90, 3, 9]), np.array([0, 50, 40]), 13)
        >>> front.tolist(), size.tolist()
        ([0, 3, 5], [11, 7, 5])
    """
    has_b = xp.minimum(length_b, 1)
    room = max_seq_length - 2 - has_b  # without [CLS] and one or two [SEP]
    front = has_b * xp.minimum(length_a, xp.maximum(room // 2, room - length_b))
    return front, room - front


Numbers = NDArray[np.int64]


class Windows(NamedTuple):
    """Windows over the tokens of some documents, in the order of the documents and of the text.

    Of each window the number of its document, and where it starts and ends there: int64
    [windows].
    """

    document: Numbers
    start: Numbers
    end: Numbers

    @property
    def lengths(self) -> Numbers:
        """The tokens of each window: int64 [windows]."""
        return self.end - self.start

    def is_last(self) -> NDArray[np.bool_]:
        """Whether each window is the last one of its document: bool [windows]."""
        following = np.append(self.document[1:], -1)
        return self.document != following


def make_windows(lengths: ArrayLike, size: ArrayLike, stride: int) -> Windows:
    """Covers documents with windows that overlap, as the original does for SQuAD.

    A window starts `stride` tokens after the one before it (or `size`, where that is less); the
    first one that reaches the end of the document is the last one. A document without tokens has
    one empty window, so that no document is lost.

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
    """The window and the position in the document of each token: two int64 [tokens of windows]."""
    lengths = windows.lengths
    number = np.repeat(np.arange(len(lengths)), lengths)
    inside = np.arange(len(number)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return number, windows.start[number] + inside


def owned_tokens(windows: Windows) -> NDArray[np.bool_]:
    """Tells which window owns each token: the one that shows most of the text around it.

    The context of a token in a window is the smaller of the numbers of tokens to its left and to
    its right, plus a hundredth of the window's length; the first window with the largest context
    owns the token, as in the original's SQuAD features: bool [tokens of all windows], as
    `window_tokens` has them.

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
