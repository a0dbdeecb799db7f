"""What a model reads of questions: `[CLS] question [SEP] window of the passage [SEP]`.

Every number is the original's (`convert_examples_to_features`), made for many questions at once.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.tokenization.windows import Windows, make_windows, owned_tokens
from pipelines.records.rows import Numbers, Rows
from pipelines.tasks.questions.answer_positions import answer_positions
from pipelines.tasks.questions.passages import Question
from pipelines.tasks.questions.tokenized import TokenizedPassages
from pipelines.tasks.text_rows import Spans, pack, ranges

if TYPE_CHECKING:
    from keras_bert_impl.tokenization.tokenizer import Tokenizer

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class WindowSettings:
    """How questions and passages become rows.

    Attributes:
        max_seq_length: the most tokens of a row.
        doc_stride: tokens from the start of a window to the start of the next one.
        max_query_length: the most tokens of a question; longer ones are truncated.
    """

    max_seq_length: int = 384
    doc_stride: int = 128
    max_query_length: int = 64


def question_rows(
    questions: Sequence[Question],
    tokenizer: "Tokenizer",
    settings: WindowSettings,
    *,
    training: bool,
    answered: bool = True,
) -> Rows:
    """Makes one row or more for each question: one for each window of its passage.

    Args:
        questions: questions of one passage stand together, so that its tokens are made once.
        tokenizer: the model's.
        settings: lengths and stride.
        training: whether rows get positions to train on.
        answered: whether rows get what undoes them; it is half of their bytes.

    Returns:
        Rows with the token features `input_ids`, `input_mask`, `segment_ids`, and with what undoes
        the windows: `text_start` and `text_end`, the characters of the passage that a token came
        from (`text_end` is 0 for other tokens), and `is_max_context`, 1 in the window that shows
        most of the text around the token. For training also `start_positions` and
        `end_positions`, int32 [rows]: the first and the last token of the answer, 0 where the
        window does not have all of it. A passage without tokens has one row without a passage.

    Raises:
        UserError: a question leaves no token for its passage, or `doc_stride` is less than 1.
    """
    passages = TokenizedPassages.of(questions, tokenizer)
    asked = Spans.of(tokenizer.encode_lines([question.text for question in questions]))
    _say_what_is_odd(questions, asked.length, passages.length, settings.max_query_length)
    asked = asked._replace(length=np.minimum(asked.length, settings.max_query_length))
    room = settings.max_seq_length - asked.length - 3  # [CLS], [SEP] and [SEP]
    windows = make_windows(passages.length, room, settings.doc_stride)
    number = windows.document  # of the question
    shown = Spans(passages.block.ids, passages.start[number] + windows.start, windows.lengths)
    asked = asked._replace(start=asked.start[number], length=asked.length[number])
    lengths, tokens = pack(tokenizer.vocabulary, asked, shown)
    offset = asked.length + 2  # where the passage begins in a row
    values = {}
    if training:
        positions = answer_positions(questions, passages, tokenizer, windows, offset)
        values = dict(zip(("start_positions", "end_positions"), positions, strict=True))
    if answered:
        begins = np.cumsum(lengths) - lengths + offset
        tokens = {**tokens, **_places(passages, windows, shown, begins, int(lengths.sum()))}
    return Rows(number, lengths, tokens, values)


def _say_what_is_odd(
    questions: Sequence[Question], asked: Numbers, shown: Numbers, most: int
) -> None:
    """Logs what the original takes without a word: cut questions, and texts of nothing."""
    for odd, what in (
        (asked > most, f"more than `max_query_length={most}` tokens; the rest is not read"),
        (asked == 0, "no token; only the passage is read"),
        (shown == 0, "a passage without a token, so that nothing can be found in it"),
    ):
        if odd.any():
            first = questions[int(odd.argmax())]
            where = f"question {first.identifier!r} (article {first.passage.article!r})"
            _LOGGER.warning(
                "%d of %d questions have %s: %s.", odd.sum(), len(questions), what, where
            )


def _places(
    passages: TokenizedPassages, windows: Windows, shown: Spans, begins: Numbers, total: int
) -> dict[str, NDArray[np.int32]]:
    """Which characters each token came from, and whether its window shows most around it."""
    source = ranges(shown.start, shown.length)
    target = ranges(begins, shown.length)
    features = {
        "text_start": passages.block.starts[source],
        "text_end": passages.block.ends[source],
        "is_max_context": owned_tokens(windows),
    }
    arrays = {name: np.zeros(total, np.int32) for name in features}
    for name, numbers in features.items():
        arrays[name][target] = numbers
    return arrays
