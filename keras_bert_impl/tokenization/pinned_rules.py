"""BERT's rules from text to words on the pinned character table, in plain Python and fast.

`reference.py` says the same rules step by step, on the running Python's `unicodedata`. Here nearly
every character has one replacement whatever stands beside it, so text is translated in one go.
"""

import itertools
import unicodedata

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
from keras_bert_impl.tokenization.reference import is_chinese


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
        # Characters whose replacement depends on what stands beside them: a capital sigma, and
        # marks that decomposing moves.
        looks_aside = {SIGMA} if do_lower_case else set()
        if strip_accents:
            moved = set(table.reordered)
            looks_aside |= moved
            looks_aside |= {c for c, d in table.decomposition.items() if not moved.isdisjoint(d)}
        self._looks_aside = looks_aside

    def words(self, text: str) -> list[str]:
        """The words of a text; lone surrogates are dropped."""
        if self._looks_aside.isdisjoint(text):
            return text.translate(self._replacements).split()
        words = "".join(self._clean(character) for character in text).split()
        return [part for word in words for part in self._split_word(word)]

    def replacement(self, character: str) -> str:
        """What becomes of a character that does not look aside."""
        cleaned = self._clean(character)
        if cleaned != character:
            return cleaned if cleaned == "" else f" {self._without_accents(character)} "
        text = self._table.lower_case.get(character, character) if self._lower else character
        return self._spaced(self._without_accents(text))

    def _clean(self, character: str) -> str:
        if self._table.has(character, DROPPED) or "\ud800" <= character <= "\udfff":
            return ""
        return f" {character} " if is_chinese(character) else character

    def _split_word(self, word: str) -> list[str]:
        """Rules 4 and 5 for a word between two spaces."""
        if self._lower:
            lower_case = self._table.lower_case
            word = "".join(
                self._sigma(word, place) if c == SIGMA else lower_case.get(c, c)
                for place, c in enumerate(word)
            )
        return self._spaced(self._without_accents(word)).split()

    def _sigma(self, word: str, place: int) -> str:
        """A small sigma: final behind a cased character and not before one, as `str.lower` does."""
        before = self._first_that_counts(word[:place][::-1])
        behind = self._first_that_counts(word[place + 1 :])
        return "ς" if before and not behind else "σ"

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
    """What `str.translate` asks, found when it is first asked for."""

    def __init__(self, rules: PinnedRules) -> None:
        super().__init__()
        self._rules = rules

    def __missing__(self, number: int) -> str:
        self[number] = replacement = self._rules.replacement(chr(number))
        return replacement
