"""What becomes of each character before the WordPiece kernel reads the text.

That kernel (tensorflow-text's `FastWordpieceTokenizeWithOffsets`) splits text by itself at white
space, Chinese characters and what *its* ICU takes for punctuation. So most of BERT's rules come
down to a replacement for each character, which also makes up for where ICU differs.
"""

from collections.abc import Collection, Iterator

from keras_bert_impl.tokenization.character_table import (
    ACCENT,
    DROPPED,
    PUNCTUATION,
    SIGMA,
    CharacterTable,
)
from keras_bert_impl.tokenization.reference import is_chinese

_PRIVATE_USE = range(0xE000, 0xF900)
_HANGUL = range(0xAC00, 0xD7A4)
SIGMA_MARK = "§"


class CharacterRules:
    """What becomes of each character.

    Two things need names of their own in the replaced text:

    * A character at which the kernel splits and BERT does not (one that Unicode assigned after the
      pinned version) is written with a private-use character.
    * A capital sigma, whose lower-case form depends on what stands beside it, is written as "§":
      a word of its own for the kernel, and as long in UTF-8 as the two forms. So a real "§" is
      written with a private-use character, too.

    Args:
        table: the facts about characters.
        do_lower_case: whether text is lower-cased.
        strip_accents: whether text is decomposed and loses its accents.
        kernel_splits: the characters that the WordPiece kernel makes words of their own.
        in_vocabulary: the characters that occur in the vocabulary.

    Example:
        >>> rules = CharacterRules(CharacterTable.load(), True, True, set("!;§"), set("abc"))
        >>> rules.replacement("É"), rules.replacement("!"), rules.replacement("¿")
        ('e', '!', ' ¿ ')
    """

    def __init__(
        self,
        table: CharacterTable,
        do_lower_case: bool,
        strip_accents: bool,
        kernel_splits: Collection[str],
        in_vocabulary: Collection[str],
    ) -> None:
        self.table, self.do_lower_case, self.strip_accents = table, do_lower_case, strip_accents
        self._kernel_splits = kernel_splits
        private = (chr(number) for number in _PRIVATE_USE)
        unused = (character for character in private if character not in in_vocabulary)
        # One name serves for all characters that the vocabulary does not have: their words are
        # unknown in any case.
        self._unknown = next(unused)
        wrong = sorted(c for c in kernel_splits if not self.splits_at(c))
        names = {c: next(unused) if c in in_vocabulary else self._unknown for c in wrong}
        self.sigma_mark = SIGMA_MARK if do_lower_case else ""
        if do_lower_case:
            known = SIGMA_MARK in in_vocabulary
            names[SIGMA_MARK] = next(unused) if known else self._unknown
        # A character whose name was taken cannot stand for itself any more.
        self._names = names | dict.fromkeys(names.values(), self._unknown)

    def replacement(self, character: str) -> str:
        """What a character becomes; itself where it stays."""
        if self.table.has(character, DROPPED):
            return ""
        if self.do_lower_case and character == SIGMA:
            return self.sigma_mark
        text = self.table.lower_case.get(character, character) if self.do_lower_case else character
        if self.strip_accents:
            decomposed = self.table.decompose(text)
            text = "".join(c for c in decomposed if not self.table.has(c, ACCENT))
        return "".join(self._written(c, is_chinese(character) or self.splits_at(c)) for c in text)

    def rewrite_piece(self, piece: str) -> str:
        """A piece of the vocabulary in the characters that replaced text is written in."""
        return "".join(self._names.get(character, character) for character in piece)

    def changes(self) -> Iterator[tuple[str, str]]:
        """Every character that does not stay as it is, with what it becomes, by code point."""
        table = self.table
        candidates = {SIGMA, *self._names, *table.characters(DROPPED | ACCENT | PUNCTUATION)}
        candidates |= table.lower_case.keys() | table.decomposition.keys()
        candidates |= {chr(number) for number in _HANGUL}
        for character in sorted(candidates):
            replacement = self.replacement(character)
            if replacement != character:
                yield character, replacement

    def splits_at(self, character: str) -> bool:
        """Whether a character is always a word of its own."""
        return self.table.has(character, PUNCTUATION) or is_chinese(character)

    def _written(self, character: str, own_word: bool) -> str:
        name = self._names.get(character, character)
        if not own_word or name in self._kernel_splits or is_chinese(name):
            return name
        return f" {name} "
