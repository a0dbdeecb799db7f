"""The tokenizer that everything uses: lines in, ids out."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from keras_bert_impl.tokenization import reference
from keras_bert_impl.tokenization.vocabulary import Vocabulary


class TokenBlock(NamedTuple):
    """The ids of many lines as one flat array.

    Attributes:
        ids: the ids of all lines one after the other, int32 [tokens].
        offsets: line i has the ids from offsets[i] to offsets[i + 1], int64 [lines + 1].
    """

    ids: np.ndarray
    offsets: np.ndarray


class Tokenizer:
    """Stage one."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        do_lower_case: bool = True,
        strip_accents: bool | None = None,
        special_tokens: Literal["split", "keep"] = "split",
    ) -> None:
        self.vocabulary = vocabulary
        self.do_lower_case = do_lower_case
        self.strip_accents = strip_accents
        self.special_tokens = special_tokens

    def encode_lines(self, lines: Sequence[str | bytes]) -> TokenBlock:
        """Cuts lines into ids."""
        encoded = [self.encode(line) for line in lines]
        offsets = np.zeros(len(lines) + 1, np.int64)
        np.cumsum([len(ids) for ids in encoded], out=offsets[1:])
        return TokenBlock(np.array([i for ids in encoded for i in ids], np.int32), offsets)

    def encode(self, line: str | bytes) -> list[int]:
        """Cuts one line into ids."""
        return [self.vocabulary.id_of(piece) for piece in self.tokenize(line)]

    def tokenize(self, line: str | bytes) -> list[str]:
        """Cuts one line into pieces."""
        return reference.tokenize(line, self.vocabulary, self.do_lower_case, self.strip_accents)

    def detokenize(self, ids: Iterable[int]) -> str:
        """Joins pieces to text."""
        text = " ".join(self.vocabulary.pieces[number] for number in ids)
        return text.replace(" ##", "")
