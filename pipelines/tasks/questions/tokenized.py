"""The tokens of questions' passages, made once for all questions of a passage."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pipelines.records.rows import Numbers
from pipelines.tasks.questions.passages import Passage, Question

if TYPE_CHECKING:
    from keras_bert_impl.tokenization.tokenizer import SpanBlock, Tokenizer

_MOST_WORDS = 1 << 32


@dataclass(frozen=True)
class TokenizedPassages:
    """The tokens of some questions' passages.

    Attributes:
        passages: the passages, each once.
        number: int64 [questions], which passage each question is about.
        block: the tokens, with the characters of the passage that they came from.
    """

    passages: Sequence[Passage]
    number: Numbers
    block: "SpanBlock"

    @classmethod
    def of(cls, questions: Sequence[Question], tokenizer: "Tokenizer") -> "TokenizedPassages":
        """Tokenizes the passages; questions of one passage stand together."""
        passages, numbers = list[Passage](), list[int]()
        for question in questions:
            if not passages or passages[-1] is not question.passage:
                passages.append(question.passage)
            numbers.append(len(passages) - 1)
        texts = [passage.text for passage in passages]
        block = tokenizer.encode_lines_with_spans(texts, unit="characters")
        return cls(passages, np.array(numbers, np.int64), block)

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
        """Finds the tokens of words of passages.

        A word may have no token (control characters are dropped); the original then counts from
        the token that follows, so that the last token is the one in front of the first.

        Args:
            questions: int64 [n], of whose passages the words are.
            first: int64 [n], the first word.
            last: int64 [n], the last word.

        Returns:
            The first and the last token, counted in the block: two int64 [n].
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
