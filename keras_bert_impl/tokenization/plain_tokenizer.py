"""The exact tokenizer in plain Python, for work done before TensorFlow is loaded.

`reference.py` says the same rules step by step, on the running Python's `unicodedata`. Here nearly
every character has one replacement whatever its neighbors are, so text is translated in one go.

Loading TensorFlow takes seconds and hundreds of megabytes; a few megabytes of text take less than
one second here. Words come again and again, and nothing in BERT's rules looks across a space: so
text is cut at spaces, each different part is cut into tokens once, and NumPy puts the ids together.
Like the kernels' models it stands on the pinned character table, not on the running Python's.
"""

import itertools
import unicodedata
from array import array
from collections.abc import Callable, Sequence

import numpy as np

from keras_bert_impl.tokenization.character_table import (
    ACCENT,
    ASSIGNED,
    CASE_IGNORABLE,
    CASED,
    DROPPED,
    PUNCTUATION,
    SIGMA,
    CharacterTable,
)
from keras_bert_impl.tokenization.reference import (
    as_text,
    is_chinese,
    longest_matches,
)
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import TokenBlock
from keras_bert_impl.tokenization.vocabulary import MAX_CHARACTERS_PER_WORD, Vocabulary


class PinnedRules:
    """Splits text into the words that WordPiece then cuts.

    Args:
        table: the facts about characters.
        do_lower_case: whether words are lower-cased.
        strip_accents: whether words are decomposed and lose their accents.

    Example:
        >>> PinnedRules(CharacterTable.load(), True, True).words("Déjà-vu in 東京!")
        ['deja', '-', 'vu', 'in', '東', '京', '!']
    """

    def __init__(self, table: CharacterTable, do_lower_case: bool, strip_accents: bool) -> None:
        self._table, self._lower, self._strip = table, do_lower_case, strip_accents
        self._replacements = _Replacements(self)
        # Characters whose replacement depends on their neighbors: a capital sigma, and
        # marks that decomposing moves.
        looks_aside = {SIGMA} if do_lower_case else set()
        if strip_accents:
            moved = set(table.reordered)
            looks_aside |= moved
            looks_aside |= {c for c, d in table.decomposition.items() if not moved.isdisjoint(d)}
        self._looks_aside = looks_aside

    def words(self, text: str) -> list[str]:
        """The words of a text."""
        if self._looks_aside.isdisjoint(text):
            return text.translate(self._replacements).split()
        words = "".join(self._clean(character) for character in text).split()
        return [part for word in words for part in self._split_word(word)]

    def replacement(self, character: str) -> str:
        """The replacement of a character that does not look aside."""
        cleaned = self._clean(character)
        if cleaned != character:
            return cleaned if cleaned == "" else f" {self._without_accents(character)} "
        text = self._table.lower_case.get(character, character) if self._lower else character
        return self._spaced(self._without_accents(text))

    def _clean(self, character: str) -> str:
        if self._table.has(character, DROPPED):
            return ""
        return f" {character} " if is_chinese(character) else character

    def _split_word(self, word: str) -> list[str]:
        """Rules 4 and 5 for a word between two spaces."""
        if self._lower:
            lower_case = self._table.lower_case
            word = "".join(
                self._sigma(word, position) if c == SIGMA else lower_case.get(c, c)
                for position, c in enumerate(word)
            )
        return self._spaced(self._without_accents(word)).split()

    def _sigma(self, word: str, position: int) -> str:
        """A small sigma: final after a cased character, in front of none, as `str.lower` does."""
        before = self._first_that_counts(word[:position][::-1])
        after = self._first_that_counts(word[position + 1 :])
        return "ς" if before and not after else "σ"

    def _first_that_counts(self, text: str) -> bool:
        """Whether the first character that is not case-ignorable is cased."""
        counts = (c for c in text if not self._table.has(c, CASE_IGNORABLE))
        return self._table.has(next(counts, " "), CASED)

    def _without_accents(self, text: str) -> str:
        if not self._strip:
            return text
        decomposed = self._table.decompose(text)
        if not self._table.reordered.keys().isdisjoint(decomposed):
            runs = itertools.groupby(decomposed, lambda c: self._order(c) > 0)
            sorted_runs = (sorted(run, key=self._order) if mark else run for mark, run in runs)
            decomposed = "".join(itertools.chain.from_iterable(sorted_runs))
        return "".join(c for c in decomposed if not self._table.has(c, ACCENT))

    def _order(self, character: str) -> int:
        # Once a character is assigned, Unicode never changes its combining class.
        assigned = self._table.has(character, ASSIGNED)
        return unicodedata.combining(character) if assigned else 0

    def _spaced(self, text: str) -> str:
        return "".join(f" {c} " if self._table.has(c, PUNCTUATION) else c for c in text)


class _Replacements(dict[int, str]):
    """The table for `str.translate`; each entry is made when it is first asked for."""

    def __init__(self, rules: PinnedRules) -> None:
        super().__init__()
        self._rules = rules

    def __missing__(self, number: int) -> str:
        self[number] = replacement = self._rules.replacement(chr(number))
        return replacement


_REMEMBERED_PARTS = 200_000
_REMEMBERED_IDS = 2_000_000
_LONGEST_REMEMBERED = 100  # characters
# Stands between two lines; UTF-8 has no such character, so text cannot have it.
_LINE_END = "\udfff"


class PlainTokenizer:
    """Cuts lines into ids: the same ids as `Tokenizer` gives.

    Args:
        settings: the vocabulary, the casing and the accents.

    Example:
        >>> tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "word", "##s", "."]
        >>> tokenizer = PlainTokenizer(TextSettings(Vocabulary(tokens)))
        >>> block = tokenizer.encode_lines(["The words.", "", "The"])
        >>> block.ids.tolist(), block.offsets.tolist()
        ([5, 6, 7, 8, 5], [0, 4, 4, 5])
    """

    def __init__(self, settings: TextSettings) -> None:
        self._rules = PinnedRules(
            CharacterTable.load(), settings.do_lower_case, settings.removes_accents
        )
        self._word_ids = _WordIds(settings.vocabulary)
        self._forget()

    def encode_lines(self, lines: Sequence[str | bytes]) -> TokenBlock:
        """Cuts lines into ids, without [CLS] and [SEP].

        Args:
            lines: lines of text; bytes are UTF-8, and bytes that are not are dropped.
        """
        if not lines:
            return TokenBlock(np.zeros(0, np.int32), np.zeros(1, np.int64))
        # Here and not in `_learn`: numbers must keep their meaning within a call.
        if len(self._starts) > _REMEMBERED_PARTS or len(self._ids) > _REMEMBERED_IDS:
            self._forget()
        text = [line if isinstance(line, str) else as_text(line) for line in lines]
        joined = f" {_LINE_END} ".join(text)
        if joined.count(_LINE_END) != len(lines) - 1:  # halves of surrogate pairs
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
        positions = np.repeat(first - ends + counts, counts) + np.arange(ends[-1])
        line_ends = ends[numbers == 0]
        offsets = np.concatenate([[0], line_ends, ends[-1:]]).astype(np.int64)
        return TokenBlock(np.frombuffer(self._ids, np.int32)[positions], offsets)

    def _forget(self) -> None:
        """Forgets all parts; part 0 is the line's end, which has no ids."""
        self._numbers = _Numbers(self._learn)
        self._numbers[_LINE_END] = 0
        # A further element, because an empty array has no buffer.
        self._ids, self._starts = array("i", [0]), array("q", [1, 1])

    def _learn(self, part: str) -> int:
        """Cuts a new part into ids; gives its number."""
        del self._ids[self._starts[-1] :]  # what a cut that was interrupted left
        for word in self._rules.words(part):
            self._ids.extend(self._word_ids.of(word))
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


class _WordIds:
    """The ids of words."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._ids = {token: number for number, token in enumerate(vocabulary.tokens)}
        self._longest = max(map(len, self._ids))
        self._unknown = (vocabulary.unk_id,)

    def of(self, word: str) -> Sequence[int]:
        """The ids of a word."""
        if len(word) > MAX_CHARACTERS_PER_WORD:
            return self._unknown
        whole = self._ids.get(word)
        if whole is not None:  # nothing is longer than the word: most words end here
            return (whole,)
        ids = longest_matches(word, self._ids.get, longest=self._longest)
        return self._unknown if ids is None else ids
