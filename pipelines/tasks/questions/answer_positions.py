"""Where the answers to train on stand in their windows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.tokenization.windows import Windows
from pipelines.records.rows import Numbers
from pipelines.tasks.questions.passages import Question
from pipelines.tasks.questions.tokenized import TokenizedPassages
from pipelines.tasks.text_rows import Spans, ranges

if TYPE_CHECKING:
    from keras_bert_impl.tokenization.tokenizer import Tokenizer


def answer_positions(
    questions: Sequence[Question],
    passages: TokenizedPassages,
    tokenizer: "Tokenizer",
    windows: Windows,
    offset: Numbers,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Finds the first and the last token of each question's first answer in each window.

    Args:
        questions: one or more.
        passages: theirs.
        tokenizer: tokenizes the answers.
        windows: over the passages, one document a question.
        offset: int64 [windows], where the passage begins in each row.

    Returns:
        Two int32 [windows]; 0 where there is no answer, or the window does not have all of it.
    """
    found = [(number, span) for number, q in enumerate(questions) if (span := q.answer_words)]
    numbers = np.array([number for number, _ in found], np.int64)
    words = np.array([span for _, span in found], np.int64).reshape(-1, 2)
    first, last = passages.tokens_of_words(numbers, words[:, 0], words[:, 1])
    texts = [questions[number].answers[0].text for number in numbers]
    answers = Spans.of(tokenizer.encode_lines(texts))
    first, last = improve_spans(passages.block.ids, first, last, answers)
    tokens = np.full((2, len(questions)), -1, np.int64)  # in the passage
    tokens[:, numbers] = np.stack([first, last]) - passages.start[numbers]
    has_answer = np.zeros(len(questions), np.bool_)
    has_answer[numbers] = True
    first, last = tokens[:, windows.document]
    inside = has_answer[windows.document] & (first >= windows.start) & (last < windows.end)
    shift = offset - windows.start
    return (
        np.where(inside, first + shift, 0).astype(np.int32),
        np.where(inside, last + shift, 0).astype(np.int32),
    )


def improve_spans(
    ids: NDArray[np.int32], first: Numbers, last: Numbers, answers: Spans
) -> tuple[Numbers, Numbers]:
    """Narrows spans of whole words to the answer's own tokens, where these are in the span.

    "(1895-1943)." becomes "1895" if that is the answer; where the answer is part of a token, the
    span stays as it is.

    Args:
        ids: int32 [tokens of all passages].
        first: int64 [answers], the first token of each span.
        last: int64 [answers], the last token of each span.
        answers: the tokens of the answers.

    Returns:
        The first and the last tokens: two int64 [answers].

    Example:
        >>> ids = np.array([7, 4, 5, 6, 5], np.int32)
        >>> answer = Spans(np.array([5], np.int32), np.array([0]), np.array([1]))
        >>> first, last = improve_spans(ids, np.array([1]), np.array([4]), answer)
        >>> first.tolist(), last.tolist()
        ([2], [2])
    """
    size = answers.length
    counts = np.where(size > 0, np.maximum(last - first + 2 - size, 0), 0)  # starts to try
    tried = np.repeat(np.arange(len(size)), counts)
    start, length = ranges(first, counts), size[tried]
    equal = ids[ranges(start, length)] == answers.ids[ranges(answers.start[tried], length)]
    if not len(equal):
        return first, last
    matches = np.flatnonzero(np.logical_and.reduceat(equal, np.cumsum(length) - length))
    narrowed, leftmost = np.unique(tried[matches], return_index=True)
    first, last = first.copy(), last.copy()
    first[narrowed] = start[matches[leftmost]]
    last[narrowed] = first[narrowed] + size[narrowed] - 1
    return first, last
