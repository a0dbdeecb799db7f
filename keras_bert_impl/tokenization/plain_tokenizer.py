"""The exact tokenizer without TensorFlow: for work that is done before TensorFlow is loaded.

Loading TensorFlow takes seconds and hundreds of megabytes; a few megabytes of text take less than
one second here. Words come again and again, and nothing in BERT's rules looks across a space: so
text is cut at spaces, each different part is cut into pieces once, and NumPy puts the ids together.
Like the kernels' models it stands on the pinned character table, not on the running Python's.
"""

from array import array
from collections.abc import Callable, Sequence

import numpy as np

from keras_bert_impl.tokenization.character_table import CharacterTable
from keras_bert_impl.tokenization.pinned_rules import PinnedRules
from keras_bert_impl.tokenization.reference import MAX_CHARACTERS_PER_WORD, as_text
from keras_bert_impl.tokenization.tokenizer import TokenBlock
from keras_bert_impl.tokenization.vocabulary import CONTINUATION, Vocabulary

_REMEMBERED_PARTS = 200_000
_REMEMBERED_IDS = 2_000_000
_LONGEST_REMEMBERED = 100  # characters
# Stands between two lines; UTF-8 has no such character, so text cannot have it.
_LINE_END = "\udfff"


class PlainTokenizer:
    """Cuts lines into ids: the same ids as `Tokenizer` gives.

    Args:
        vocabulary: the pieces.
        do_lower_case: see `Tokenizer`.
        strip_accents: see `Tokenizer`.

    Example:
        >>> pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "word", "##s", "."]
        >>> block = PlainTokenizer(Vocabulary(pieces)).encode_lines(["The words.", "", "The"])
        >>> block.ids.tolist(), block.offsets.tolist()
        ([5, 6, 7, 8, 5], [0, 4, 4, 5])
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        do_lower_case: bool = True,
        strip_accents: bool | None = None,
    ) -> None:
        strips = do_lower_case if strip_accents is None else strip_accents
        self._rules = PinnedRules(CharacterTable.load(), do_lower_case, strips)
        self._pieces = _Pieces(vocabulary)
        self._forget()

    def encode_lines(self, lines: Sequence[str | bytes]) -> TokenBlock:
        """Cuts lines into ids, without [CLS] and [SEP].

        Args:
            lines: lines of text; bytes are UTF-8, and bytes that are not are dropped.
        """
        if not lines:
            return TokenBlock(np.zeros(0, np.int32), np.zeros(1, np.int64))
        if len(self._starts) > _REMEMBERED_PARTS or len(self._ids) > _REMEMBERED_IDS:
            self._forget()
        text = [line if isinstance(line, str) else as_text(line) for line in lines]
        joined = f" {_LINE_END} ".join(text)
        if joined.count(_LINE_END) != len(lines) - 1:  # lone surrogates in a line
            joined = f" {_LINE_END} ".join(map(as_text, text))
        parts = joined.split(" ")
        numbers = np.fromiter(map(self._numbers.__getitem__, parts), np.int64, len(parts))
        return self._put_together(numbers)

    def _put_together(self, numbers: np.ndarray) -> TokenBlock:
        """The ids of parts in a row, by their numbers, int64 [parts]."""
        starts = np.frombuffer(self._starts, np.int64)
        first = starts[numbers]
        counts = starts[numbers + 1] - first
        ends = np.cumsum(counts)  # [parts]
        places = np.repeat(first - ends + counts, counts) + np.arange(ends[-1])
        line_ends = ends[numbers == 0]
        offsets = np.concatenate([[0], line_ends, ends[-1:]]).astype(np.int64)
        return TokenBlock(np.frombuffer(self._ids, np.int32)[places], offsets)

    def _forget(self) -> None:
        """Forgets all parts; part 0 is the line's end, which has no ids."""
        self._numbers = _Numbers(self._learn)
        self._numbers[_LINE_END] = 0
        # A further element, because an empty array has no buffer.
        self._ids, self._starts = array("i", [0]), array("q", [1, 1])

    def _learn(self, part: str) -> int:
        """Cuts a new part into ids; gives its number."""
        for word in self._rules.words(part):
            self._ids.extend(self._pieces.cut(word))
        number = len(self._starts) - 1
        self._starts.append(len(self._ids))
        if len(part) <= _LONGEST_REMEMBERED:
            self._numbers[part] = number
        return number


class _Numbers(dict[str, int]):
    """The numbers of parts; one that is new is learned."""

    def __init__(self, learn: Callable[[str], int]) -> None:
        super().__init__()
        self._learn = learn

    def __missing__(self, part: str) -> int:
        return self._learn(part)


class _Pieces:
    """Greedy longest match."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._ids = {piece: number for number, piece in enumerate(vocabulary.pieces)}
        self._longest = max(map(len, self._ids))
        self._unknown = (vocabulary.unk_id,)

    def cut(self, word: str) -> Sequence[int]:
        """The ids of a word."""
        if len(word) > MAX_CHARACTERS_PER_WORD:
            return self._unknown
        ids: list[int] = []
        start = 0
        while start < len(word):
            prefix = CONTINUATION if start else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                number = self._ids.get(prefix + word[start:end])
                if number is not None:
                    break
            else:
                return self._unknown
            ids.append(number)
            start = end
        return ids
