"""Rows of questions: `[CLS] question [SEP] window of the passage [SEP]`.

Every number is the original's (`convert_examples_to_features`), made for many questions at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.tokenization.long_texts import Windows, make_windows, owned_tokens
from keras_bert_impl.tokenization.tokenizer import LineTokenizer, SpanBlock
from pipelines.fine_tuning.text_rows import Spans, pack, ranges
from pipelines.records.rows import Numbers, Rows
from pipelines.tasks.questions.files import Passage, Question

_MOST_WORDS = 1 << 32


@dataclass(frozen=True)
class TokenizedPassages:
    """The tokens of some questions' passages, each once; `number` is that of a question's."""

    passages: Sequence[Passage]
    number: Numbers
    block: SpanBlock

    @classmethod
    def of(cls, questions: Sequence[Question], tokenizer: LineTokenizer) -> "TokenizedPassages":
        """Tokenizes the passages."""
        passages = dict.fromkeys(question.passage for question in questions)
        numbers = {passage: number for number, passage in enumerate(passages)}
        texts = [passage.text for passage in passages]
        block = tokenizer.encode_lines_with_spans(texts, unit="characters")
        number = np.array([numbers[question.passage] for question in questions], np.int64)
        return cls([*passages], number, block)

    @property
    def start(self) -> Numbers:
        """Where in the block each question's passage begins: int64 [questions]."""
        return self.block.offsets[self.number]

    @property
    def length(self) -> Numbers:
        """The tokens of each question's passage: int64 [questions]."""
        return np.diff(self.block.offsets)[self.number]

    def tokens_of_words(
        self, questions: Numbers, first: Numbers, last: Numbers
    ) -> tuple[Numbers, Numbers]:
        """Finds the first and the last token, counted in the block, of words: int64 [n].

        A word may have no token (control characters are dropped); the original then counts from
        the token that follows, so that the last token is the one in front of the first.
        """
        counts = np.diff(self.block.offsets)
        texts = np.repeat(np.arange(len(self.passages)), counts)  # [tokens]
        lengths = np.array([len(passage.text) for passage in self.passages], np.int64)
        words = np.concatenate([passage.word_of_character for passage in self.passages])
        words_of_tokens = words[(np.cumsum(lengths) - lengths)[texts] + self.block.starts]
        keys = texts * _MOST_WORDS + words_of_tokens  # never falling
        passage = self.number[questions] * _MOST_WORDS
        return (
            np.searchsorted(keys, passage + first, side="left"),
            np.searchsorted(keys, passage + last, side="right") - 1,
        )


def answer_positions(
    questions: Sequence[Question],
    passages: TokenizedPassages,
    tokenizer: LineTokenizer,
    windows: Windows,
    offset: Numbers,
) -> dict[str, NDArray[np.int32]]:
    """Finds the first and the last token of each question's first answer in each window.

    `offset` is where the passage begins in each row. Gives int32 [windows] each; 0 where there is
    no answer, or the window does not have all of it.
    """
    found = [(number, span) for number, q in enumerate(questions) if (span := q.answer_words)]
    numbers = np.array([number for number, _ in found], np.int64)
    words = np.array([span for _, span in found], np.int64).reshape(-1, 2)
    first, last = passages.tokens_of_words(numbers, words[:, 0], words[:, 1])
    texts = [questions[number].answers[0].text for number in numbers]
    answers = Spans.of(tokenizer.encode_lines(texts))
    first, last = improve_spans(passages.block.ids, first, last, answers)
    tokens = np.full((2, len(questions)), -1, np.int64)  # in the passage; -1 is in no window
    tokens[:, numbers] = np.stack([first, last]) - passages.start[numbers]
    first, last = tokens[:, windows.document]
    inside = (first >= windows.start) & (last < windows.end)
    shift = offset - windows.start
    return {
        name: np.where(inside, token + shift, 0).astype(np.int32)
        for name, token in (("start_positions", first), ("end_positions", last))
    }


def improve_spans(
    ids: NDArray[np.int32], first: Numbers, last: Numbers, answers: Spans
) -> tuple[Numbers, Numbers]:
    """Narrows spans of whole words to the answer's own tokens, where these are in the span.

    "(1895-1943)." becomes "1895" if that is the answer; where the answer is part of a token, the
    span stays as it is. `ids` are those of all passages; first and last are int64 [answers].
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


@dataclass(frozen=True)
class WindowSettings:
    """How questions and passages become rows."""

    max_seq_length: int = 384
    doc_stride: int = 128
    max_query_length: int = 64


def question_rows(
    questions: Sequence[Question],
    tokenizer: LineTokenizer,
    settings: WindowSettings,
    *,
    training: bool,
    answered: bool = True,
) -> Rows:
    """Makes one row or more for each question: one for each window of its passage.

    `text_start` and `text_end` are the characters of the passage that a token came from (`text_end`
    is 0 for other tokens), and `is_max_context` is 1 in the window that shows most of the text
    around the token; rows have them where they are to be `answered`. For training there are
    `start_positions` and `end_positions`, int32 [rows]; see `answer_positions`. A passage without
    tokens has one row without a passage.
    """
    passages = TokenizedPassages.of(questions, tokenizer)
    asked = Spans.of(tokenizer.encode_lines([question.text for question in questions]))
    cut = np.maximum(asked.length - settings.max_query_length, 0)
    asked = asked._replace(length=asked.length - cut)
    room = settings.max_seq_length - asked.length - 3  # [CLS], [SEP] and [SEP]
    windows = make_windows(passages.length, room, settings.doc_stride)
    number = windows.document  # of the question
    shown = Spans(passages.block.ids, passages.start[number] + windows.start, windows.lengths)
    asked = asked._replace(start=asked.start[number], length=asked.length[number])
    lengths, tokens = pack(tokenizer.vocabulary, asked, shown)
    offset = asked.length + 2  # where the passage begins in a row
    found = answer_positions(questions, passages, tokenizer, windows, offset) if training else {}
    if answered:
        begins = np.cumsum(lengths) - lengths + offset
        tokens = {**tokens, **_places(passages, windows, shown, begins, int(lengths.sum()))}
    return Rows(number, lengths, tokens, found, num_truncated=cut)


def _places(
    passages: TokenizedPassages, windows: Windows, shown: Spans, begins: Numbers, total: int
) -> dict[str, NDArray[np.int32]]:
    """Which characters each token came from, and whether its window shows most around it."""
    source = ranges(shown.start, shown.length)
    found = passages.block.starts[source], passages.block.ends[source], owned_tokens(windows)
    arrays = np.zeros((len(found), total), np.int32)
    arrays[:, ranges(begins, shown.length)] = found
    return dict(zip(("text_start", "text_end", "is_max_context"), arrays, strict=True))
