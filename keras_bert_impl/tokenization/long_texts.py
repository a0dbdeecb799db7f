"""Texts that are longer than a model's input: truncated, their two ends, or windows over all.

The same three ways exist for rows made in advance (`pipelines.fine_tuning.text_rows`) and inside a
served graph (`keras_bert_impl.serving.served_models`); what they have in common stands here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_bert_impl.options import check_options, option

TRUNCATE, HEAD_TAIL, WINDOWS = "truncate", "head_tail", "windows"
MEAN, MAX = "mean", "max"

_HEAD_SHARE = 4
"""Of what stays, one part of so many is the text's beginning and the rest its end: 128 and 382 of
510 tokens did best in Sun et al., "How to Fine-Tune BERT for Text Classification?" (2019)."""


@dataclass(frozen=True, kw_only=True)
class LongTexts:
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

    def __post_init__(self) -> None:
        check_options(self)

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
    """How many of the kept tokens are a text's first ones; the others are its last ones.

    Example:
        >>> head_length(510), head_length(3)
        (127, 0)
    """
    return kept // _HEAD_SHARE


def window_room(length_a: Any, length_b: Any, max_seq_length: int, xp: Any = np) -> tuple[Any, Any]:
    """Divides each row between a first text that stands in every window and the windows.

    The windows move over the second text; over the first one where there is no second. The first
    text of a pair keeps half of the room at least, and all that the second one leaves.

    Args:
        length_a: int [documents], the tokens of the first text.
        length_b: int [documents], the tokens of the second text, 0 where there is none.

    Returns:
        The tokens of the first text that stand in front of each window (0 where there is no
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
