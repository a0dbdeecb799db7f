"""Answers to questions out of a model's logits, as the original chooses them.

The spans that a model finds best, best first, over all windows of a question; then the words of the
passage that a span stands for. The original joins the passage's words with single blanks, cuts off
what does not belong to the span ("Steve Smith's" → "Steve Smith") by comparing characters, and
gives up where the numbers of characters differ: its files need exactly that. The characters of a
span in the text itself are `text_start` and `text_end` of its tokens; characters that the tokenizer
drops (a zero-width space, a soft hyphen) belong to the token in front of them, and end no answer.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keras_bert_impl.tokenization.reference import is_dropped, split_words
from keras_bert_impl.tokenization.text_settings import Casing, TextSettings
from pipelines.records.rows import Numbers, Rows
from pipelines.tasks.questions.files import Question


def visible_end(text: str, start: int, end: int) -> int:
    """The position after the last character of a span that the tokenizer does not drop."""
    while end > start and is_dropped(text[end - 1]):
        end -= 1
    return end


@cache
def dropped_at_the_end() -> str:
    """A regular expression for what `visible_end` leaves, for Python and TensorFlow's graphs."""
    dropped = [code for code in range(sys.maxunicode + 1) if is_dropped(chr(code))]
    known = "".join(f"\\x{code:02x}" if code < 128 else chr(code) for code in dropped)
    return f"[{known}]+$"


_ASCII_WORDS = re.compile(r"[A-Za-z0-9]+|[^A-Za-z0-9 ]")


def join_tokens(tokens: Sequence[str]) -> str:
    """The text of WordPiece tokens.

    Example:
        >>> join_tokens(["rain", "##ed", ",", "then"])
        'rained , then'
    """
    return " ".join(" ".join(tokens).replace(" ##", "").replace("##", "").split())


def find_original_text(span: str, words: str, casing: Casing) -> str:
    """Finds the part of some words of the passage that a span of tokens stands for.

    It is all of them where the two cannot be aligned.

    Example:
        >>> find_original_text("steve smith", "Steve Smith's", Casing(do_lower_case=True))
        'Steve Smith'
        >>> find_original_text("[UNK] smith", "☂ Smith's", Casing(do_lower_case=True))
        "☂ Smith's"
    """
    normalized = " ".join(_normalized_words(words, casing))
    first = normalized.find(span)
    if first < 0 or not span:
        return words
    last = first + len(span) - 1
    if normalized[first] == " " or normalized[last] == " ":
        return words
    positions = [at for at, character in enumerate(words) if character != " "]
    if len(positions) != len(normalized) - normalized.count(" "):
        return words
    start = first - normalized.count(" ", 0, first)
    end = last - normalized.count(" ", 0, last)
    return words[positions[start] : positions[end] + 1]


def _normalized_words(text: str, casing: Casing) -> list[str]:
    if text.isascii() and text.isprintable():  # the same, faster
        return _ASCII_WORDS.findall(text.lower() if casing.do_lower_case else text)
    return split_words(text, bool(casing.do_lower_case), casing.strip_accents)


Logits = NDArray[np.float64]


class BestSpans(NamedTuple):
    """Spans of some questions: question after question, each question's best one first.

    A span is in a row from a first to a last position, [spans] each; `offsets` [questions + 1] say
    where the spans of each question begin.
    """

    row: Numbers
    first: Numbers
    last: Numbers
    start_logit: Logits
    end_logit: Logits
    offsets: Numbers

    def tokens(self, rows: Rows) -> tuple[Numbers, Numbers]:
        """The first and the last token of each span, counted over all rows."""
        begins = rows.offsets()[self.row]
        return begins + self.first, begins + self.last


def dense_logits(rows: Rows, logits: ArrayLike) -> NDArray[np.float32]:
    """Puts logits [tokens of all rows] into float32 [rows, length], minus infinity at padding."""
    dense = np.full((len(rows), int(rows.lengths.max(initial=0))), -np.inf, np.float32)
    dense[np.arange(dense.shape[1]) < rows.lengths[:, None]] = np.asarray(logits)
    return dense


def find_best_spans(
    rows: Rows, start: ArrayLike, end: ArrayLike, n_best_size: int, max_answer_length: int
) -> BestSpans:
    """Finds the spans between each row's best starts and best ends, as the original does.

    A span starts at a token that its window shows best, and does not leave the passage. Spans with
    equal scores stay in the order of their rows, then starts, then ends; equal logits in the order
    of the text. Logits are float [rows, length]; those of padding count among the best but give no
    span.
    """
    starts, ends = np.asarray(start, np.float64), np.asarray(end, np.float64)
    firsts, lasts = _best_positions(starts, n_best_size), _best_positions(ends, n_best_size)
    padded = rows.padded(starts.shape[1])
    may_start = np.take_along_axis(padded["is_max_context"] > 0, firsts, axis=1)
    may_end = np.take_along_axis(padded["text_end"] > 0, lasts, axis=1)
    more = lasts[:, None, :] - firsts[:, :, None]  # [rows, starts, ends]
    possible = (more >= 0) & (more < max_answer_length)
    possible &= may_start[:, :, None] & may_end[:, None, :]
    row, start_rank, end_rank = np.nonzero(possible)
    first, last = firsts[row, start_rank], lasts[row, end_rank]
    start_logit, end_logit = starts[row, first], ends[row, last]
    order = np.lexsort((-(start_logit + end_logit), rows.examples[row]))  # stable
    questions = int(rows.examples[-1]) + 1 if len(rows) else 0
    offsets = np.searchsorted(rows.examples[row][order], np.arange(questions + 1))
    positions = row[order], first[order], last[order]
    return BestSpans(*positions, start_logit[order], end_logit[order], offsets)


def _best_positions(logits: Logits, count: int) -> Numbers:
    """The positions of the highest logits of each row, the first of equal ones first."""
    return np.argsort(-logits, axis=1, kind="stable")[:, :count]


def find_null_logits(rows: Rows, start: ArrayLike, end: ArrayLike) -> Logits:
    """How much a model is for no answer: the logits of start and end at [CLS], [2, questions].

    They are those of the row where their sum is lowest, the first of equal ones.
    """
    logits = np.stack([np.asarray(one, np.float64)[:, 0] for one in (start, end)])
    order = np.lexsort((logits.sum(axis=0), rows.examples))
    return logits[:, order[np.flatnonzero(np.diff(rows.examples[order], prepend=-1))]]


SURELY_NO_ANSWER = 1_000_000.0
"""The null odds where no span is possible; the original has none, and fails."""


@dataclass(frozen=True)
class AnswerSettings:
    """How answers are chosen."""

    n_best_size: int = 20
    max_answer_length: int = 30
    version_2_with_negative: bool = False


class Candidate(NamedTuple):
    """One of the best answers to a question, as the original writes it; "" is no answer.

    `passage.text[start:end]` is the answer as the text has it; both are 0 for no answer.
    """

    text: str
    start_logit: float
    end_logit: float
    start: int = 0
    end: int = 0

    @property
    def score(self) -> float:
        """The key that answers are sorted by."""
        return self.start_logit + self.end_logit


class Prediction(NamedTuple):
    """The best answers to a question, one at least; no answer is one where there may be none.

    `null_odds` say how much surer the model is of no answer than of the best one; None where there
    must be an answer.
    """

    candidates: Sequence[Candidate]
    null_odds: float | None = None

    def best(self, null_score_diff_threshold: float = 0.0) -> Candidate:
        """The answer: no answer where the null odds are above the threshold."""
        if self.null_odds is None:
            return self.candidates[0]
        unanswered = self.null_odds > null_score_diff_threshold
        wanted = (x for x in self.candidates if bool(x.text) != unanswered)
        return next(wanted, self.candidates[0])


def predict(
    questions: Sequence[Question],
    rows: Rows,
    start_logits: ArrayLike,
    end_logits: ArrayLike,
    text: TextSettings,
    settings: AnswerSettings,
) -> list[Prediction]:
    """Answers questions by a model's logits, float32 [rows, length] from `dense_logits`.

    A question for which no span is possible is answered "empty", as in the original, or, where
    there may be no answer (and the original fails), with none.
    """
    count = settings.n_best_size
    spans = find_best_spans(rows, start_logits, end_logits, count, settings.max_answer_length)
    found = _candidates(questions, rows, spans, text)
    if not settings.version_2_with_negative:
        return [Prediction(_best(some, count) or [_EMPTY]) for some in found]
    null = find_null_logits(rows, start_logits, end_logits)
    return [
        _with_null(some, Candidate("", *logits), count)
        for some, logits in zip(found, null.T.tolist(), strict=True)
    ]


_EMPTY = Candidate("empty", 0.0, 0.0)


def _best(candidates: Iterator[Candidate], count: int) -> list[Candidate]:
    """The first candidates of which no two have the same text."""
    best = dict[str, Candidate]()
    for candidate in candidates:
        best.setdefault(candidate.text, candidate)
        if len(best) == count:
            break
    return list(best.values())


def _with_null(candidates: Iterator[Candidate], null: Candidate, count: int) -> Prediction:
    """A prediction with no answer in its place, or after the others where they are better."""
    answers = _best(candidates, count)
    better = sum(answer.score >= null.score for answer in answers)
    kept = [*answers[:better], null, *answers[better:]]
    if better < count:  # no answer is one of the `count` best, so that one answer less is
        kept = kept[:count]
    first = next((x for x in kept if x.text), None)
    odds = null.score - first.start_logit - first.end_logit if first else SURELY_NO_ANSWER
    return Prediction(kept, odds)


def _candidates(
    questions: Sequence[Question], rows: Rows, spans: BestSpans, text: TextSettings
) -> Iterator[Iterator[Candidate]]:
    """The candidates of each question, the best one first; a text is made when it is looked at."""
    casing = Casing(text.do_lower_case, text.strip_accents)
    ids, starts, ends = (rows.tokens[name] for name in ("input_ids", "text_start", "text_end"))
    firsts, lasts = spans.tokens(rows)

    def candidate(question: Question, span: int) -> Candidate:
        passage, first, last = question.passage, int(firsts[span]), int(lasts[span])
        start, end = int(starts[first]), int(ends[last])
        tokens = [text.vocabulary.tokens[x] for x in ids[first : last + 1].tolist()]
        word_of = passage.word_of_character
        touched = passage.words[word_of[start] : word_of[starts[last]] + 1]
        return Candidate(
            find_original_text(join_tokens(tokens), " ".join(touched), casing),
            float(spans.start_logit[span]),
            float(spans.end_logit[span]),
            start,
            visible_end(passage.text, start, end),
        )

    for question, own in zip(questions, pairwise(spans.offsets.tolist()), strict=True):
        yield map(partial(candidate, question), range(*own))
