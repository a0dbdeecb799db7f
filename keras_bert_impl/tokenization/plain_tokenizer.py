"""The exact tokenizer in plain Python, for work done before TensorFlow is loaded.

`reference.py` says the same rules step by step, on the running Python's `unicodedata`. Here nearly
every character has one replacement whatever its neighbors are, so text is translated in one go.

Loading TensorFlow takes seconds and hundreds of megabytes; a few megabytes of text take less than
one second here. Words come again and again, and nothing in BERT's rules looks across a space: so
text is cut at spaces, each different part is cut into tokens once, and NumPy puts the ids together.
Like the kernels' models it stands on the pinned character table, not on the running Python's.
"""

import itertools
import re
import threading
import unicodedata
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from keras_bert_impl.tokenization.added_tokens import cut_out, extractions
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
from keras_bert_impl.tokenization.packing import as_lines
from keras_bert_impl.tokenization.reference import (
    as_text,
    composed,
    composed_places,
    is_chinese,
    longest_matches,
)
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import SpanBlock, SpecialTokens, TokenBlock
from keras_bert_impl.tokenization.vocabulary import CONTINUATION, Vocabulary


class Placed(NamedTuple):
    """A character that the rules left, and the number of the one that it came from."""

    character: str
    source: int


class PinnedRules:
    """Splits text into the words that WordPiece then cuts.

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
        cleaned, aside = "".join(map(self._clean, text)).split(), self._looks_aside
        return " ".join(
            word.translate(self._replacements)
            if aside.isdisjoint(word)
            else "".join(one.character for one in self.placed(word))
            for word in cleaned
        ).split()

    def placed(self, text: str) -> list[Placed]:
        """What is left of a text, with blanks between its words, and where each came from.

        Example:
            >>> rules = PinnedRules(CharacterTable.load(), True, True)
            >>> [tuple(one) for one in rules.placed("É a")]
            [('e', 0), (' ', 1), ('a', 2)]
        """
        if self._looks_aside.isdisjoint(text):
            return _each(text, lambda one: self._replacements[ord(one.character)])
        cleaned = _each(text, lambda one: self._clean(one.character))
        return [x for blank, word in _runs(cleaned) for x in self._placed_word(blank, word)]

    def _placed_word(self, blank: bool, word: list[Placed]) -> list[Placed]:
        """Rules 4 and 5 for a word between two spaces; blanks stay."""
        if blank:
            return word
        if self._lower:
            text, lower_case = "".join(one.character for one in word), self._table.lower_case
            lowered = [
                self._sigma(text, position) if c == SIGMA else lower_case.get(c, c)
                for position, c in enumerate(text)
            ]
            word = _replaced(word, lowered)
        if self._strip:
            word = _replaced(word, [self._table.decompose(one.character) for one in word])
            marks = itertools.groupby(word, lambda one: self._order(one.character) > 0)
            by_order = (
                sorted(run, key=lambda one: self._order(one.character)) if mark else run
                for mark, run in marks
            )
            word = [one for run in by_order for one in run]
            word = [one for one in word if not self._table.has(one.character, ACCENT)]
        return _replaced(word, [self._spaced(one.character) for one in word])

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
        return "".join(c for c in decomposed if not self._table.has(c, ACCENT))

    def _order(self, character: str) -> int:
        # Once a character is assigned, Unicode never changes its combining class.
        assigned = self._table.has(character, ASSIGNED)
        return unicodedata.combining(character) if assigned else 0

    def _spaced(self, text: str) -> str:
        return "".join(f" {c} " if self._table.has(c, PUNCTUATION) else c for c in text)


def _each(text: str, replacement: Callable[[Placed], str]) -> list[Placed]:
    characters = [Placed(character, number) for number, character in enumerate(text)]
    return _replaced(characters, [replacement(one) for one in characters])


def _replaced(characters: Sequence[Placed], texts: Sequence[str]) -> list[Placed]:
    """Each text where a character was, in the place that this came from."""
    pairs = zip(characters, texts, strict=True)
    return [Placed(character, one.source) for one, text in pairs for character in text]


def _runs(characters: Iterable[Placed]) -> Iterator[tuple[bool, list[Placed]]]:
    """Blanks and words in turn."""
    for blank, run in itertools.groupby(characters, lambda one: one.character.isspace()):
        yield blank, list(run)


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


class _Part(NamedTuple):
    """The tokens of a part of a line: ids, and in characters of the part where they stand."""

    ids: Sequence[int] = ()
    starts: Sequence[int] = ()
    ends: Sequence[int] = ()


class PlainTokenizer:
    """Cuts lines into ids: the same ids as `Tokenizer` gives. Several threads may ask at once.

    Example:
        >>> tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "word", "##s", "."]
        >>> tokenizer = PlainTokenizer(TextSettings(Vocabulary(tokens)))
        >>> block = tokenizer.encode_lines(["The words.", "", "The"])
        >>> block.ids.tolist(), block.offsets.tolist()
        ([5, 6, 7, 8, 5], [0, 4, 4, 5])
        >>> spans = tokenizer.encode_lines_with_spans(["The words."])
        >>> spans.starts.tolist(), spans.ends.tolist()
        ([0, 4, 8, 9], [3, 8, 9, 10])
    """

    def __init__(self, settings: TextSettings, special_tokens: SpecialTokens = "split") -> None:
        self.settings, self.vocabulary = settings, settings.vocabulary
        self.special_tokens = special_tokens
        self._rules = PinnedRules(
            CharacterTable.load(), settings.do_lower_case, settings.removes_accents
        )
        self._word_ids = _WordIds(settings.vocabulary, settings.longest_word)
        self._steps = extractions(settings, keeps_special_tokens=special_tokens == "keep")
        self._lock = threading.Lock()  # over what is remembered
        self._forget()

    def encode_lines(self, lines: Sequence[str | bytes]) -> TokenBlock:
        """Cuts lines into ids, without [CLS] and [SEP]; bytes that are no UTF-8 are dropped."""
        if not (lines := as_lines(lines)):
            return TokenBlock(np.zeros(0, np.int32), np.zeros(1, np.int64))
        text = [line if isinstance(line, str) else as_text(line) for line in lines]
        if any(re.search(step.pattern, line) for step in self._steps for line in text):
            return self._encode_around(text)
        return self._encode(text)

    def encode_lines_with_spans(
        self, lines: Sequence[str | bytes], unit: Literal["characters"] = "characters"
    ) -> SpanBlock:
        """Cuts lines into ids and says which characters of its line each token is of."""
        del unit
        parts = [self._line_with_spans(as_text(line)) for line in as_lines(lines)]
        counts = np.array([len(part.ids) for part in parts], np.int64)
        numbers = itertools.chain.from_iterable
        return SpanBlock(
            np.fromiter(numbers(part.ids for part in parts), np.int32),
            np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
            np.fromiter(numbers(part.starts for part in parts), np.int64),
            np.fromiter(numbers(part.ends for part in parts), np.int64),
        )

    def _line_with_spans(self, line: str) -> _Part:
        ids, starts, ends = list[int](), list[int](), list[int]()
        for text, begin, end in cut_out(line, self._steps):
            if isinstance(text, int):
                ids.append(text)
                starts.append(begin)
                ends.append(end)
                continue
            for part in text.split(" "):
                with self._lock:
                    found = self._part_with_spans(part)
                ids += found.ids
                starts += [begin + start for start in found.starts]
                ends += [begin + end for end in found.ends]
                begin += len(part) + 1  # noqa: PLW2901
        return _Part(ids, starts, ends)

    def _part_with_spans(self, part: str) -> _Part:
        if part in self._placed:
            return self._placed[part]
        if len(self._placed) > _REMEMBERED_PARTS:
            self._placed.clear()
        found = self._place_composed(part) if self.settings.composes else self._place(part)
        if len(part) <= _LONGEST_REMEMBERED:
            self._placed[part] = found
        return found

    def _place_composed(self, part: str) -> _Part:
        """Places the tokens of the composed part in the part as it is."""
        pairs = [*composed_places(part)]
        found, places = self._place("".join(one for one, _ in pairs)), [place for _, place in pairs]
        ends = [bisect_right(places, places[end - 1]) for end in found.ends]
        return _Part(
            found.ids,
            [places[start] for start in found.starts],
            [[*places, len(part)][end] for end in ends],
        )

    def _place(self, part: str) -> _Part:
        """A token ends where the next character begins that left something, or at the end."""
        characters = self._rules.placed(part)
        sources = sorted({one.source for one in characters})
        follows = dict(zip(sources, [*sources[1:], len(part)], strict=False))
        ids, starts, ends = list[int](), list[int](), list[int]()
        for blank, word in _runs(characters):
            if blank:
                continue
            first = 0
            for number, size in self._word_ids.with_sizes("".join(x.character for x in word)):
                ids.append(number)
                starts.append(word[first].source)
                ends.append(follows[word[first + size - 1].source])
                first += size
        return _Part(ids, starts, ends)

    def _encode_around(self, lines: Sequence[str]) -> TokenBlock:
        """Cuts lines around the tokens that are taken out of them."""
        cut = [[part for part, _, _ in cut_out(line, self._steps)] for line in lines]
        block = self._encode([part for parts in cut for part in parts if isinstance(part, str)])
        texts = iter(np.split(block.ids, block.offsets[1:-1]))
        ids, offsets = list[int](), [0]
        for parts in cut:
            for part in parts:
                ids += [part] if isinstance(part, int) else next(texts).tolist()
            offsets.append(len(ids))
        return TokenBlock(np.array(ids, np.int32), np.array(offsets, np.int64))

    def _encode(self, text: Sequence[str]) -> TokenBlock:
        joined = f" {_LINE_END} ".join(text)
        if joined.count(_LINE_END) != len(text) - 1:  # halves of surrogate pairs
            joined = f" {_LINE_END} ".join(map(as_text, text))
        parts = joined.split(" ")
        with self._lock:
            # Here and not in `_learn`: numbers must keep their meaning within a call.
            if len(self._starts) > _REMEMBERED_PARTS or len(self._ids) > _REMEMBERED_IDS:
                self._forget()
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
        self._placed: dict[str, _Part] = {}

    def _learn(self, part: str) -> int:
        """Cuts a new part into ids; gives its number."""
        del self._ids[self._starts[-1] :]  # what a cut that was interrupted left
        for word in self._rules.words(composed(part) if self.settings.composes else part):
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
    def __init__(self, vocabulary: Vocabulary, longest_word: int) -> None:
        self._tokens, self._longest_word = vocabulary.tokens, longest_word
        self._ids = {token: number for number, token in enumerate(vocabulary.tokens)}
        self._longest = max(map(len, self._ids))
        self._unknown = (vocabulary.unk_id,)

    def of(self, word: str) -> Sequence[int]:
        if len(word) > self._longest_word:
            return self._unknown
        whole = self._ids.get(word)
        if whole is not None:  # nothing is longer than the word: most words end here
            return (whole,)
        ids = longest_matches(word, self._ids.get, longest=self._longest)
        return self._unknown if ids is None else ids

    def with_sizes(self, word: str) -> Iterator[tuple[int, int]]:
        """The ids of a word, and the characters of the word that each stands for."""
        ids = self.of(word)
        if ids == self._unknown:
            yield ids[0], len(word)
            return
        for number, one in enumerate(ids):
            yield one, len(self._tokens[one]) - (len(CONTINUATION) if number else 0)
