"""Added tokens: what is taken out of a text before anything else, as Hugging Face's library does.

A text is cut around the tokens that occur in it as they are, and what is left around those that
occur in its normal form (`normalized`): lower-cased and without accents where the model's text is.
Each of the two steps is one regular expression, the same for Python and for TensorFlow's graphs, in
which a character of a normal form stands for all characters that become it.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from keras_bert_impl.tokenization.character_table import (
    ACCENT,
    DROPPED,
    SIGMA,
    SURROGATES,
    CharacterTable,
)
from keras_bert_impl.tokenization.reference import character_ranges
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS

if TYPE_CHECKING:
    from keras_bert_impl.tokenization.text_settings import TextSettings

_BLANK = "[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"  # what Rust's \s is


class AddedToken(NamedTuple):
    """A token that is taken out of the text; `id` is None where the vocabulary says it.

    Attributes:
        lstrip: whether blanks before it belong to it; `rstrip`: those after it.
        normalized: whether it is looked for in the normal form of the text.
    """

    content: str
    id: int | None = None
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False

    def as_json(self) -> dict[str, Any]:
        """The token as an entry of `added_tokens_decoder` in `tokenizer_config.json`."""
        flags = {name: getattr(self, name) for name in ("lstrip", "normalized", "rstrip")}
        return {
            "content": self.content,
            **flags,
            "single_word": False,
            "special": not self.normalized,
        }


class Extraction(NamedTuple):
    """One step: the pattern of all its tokens, and of each token its own pattern and its id."""

    pattern: str
    tokens: tuple[tuple[str, int], ...]

    def parts(self, text: str) -> Iterator[tuple[str | int, int, int]]:
        """The text in between and the ids of tokens in turn, each with its start and its end."""
        begin = 0
        for found in re.finditer(self.pattern, text):
            yield text[begin : found.start()], begin, found.start()
            whole = found[0]
            token = next(number for one, number in self.tokens if re.fullmatch(one, whole))
            yield token, found.start(), found.end()
            begin = found.end()
        yield text[begin:], begin, len(text)


def extractions(settings: "TextSettings", *, keeps_special_tokens: bool) -> tuple[Extraction, ...]:
    """The steps in their order; none where a text has no token that is taken out.

    Example:
        >>> from keras_bert_impl.tokenization.text_settings import TextSettings
        >>> from keras_bert_impl.tokenization.vocabulary import Vocabulary
        >>> vocabulary = Vocabulary([*SPECIAL_TOKENS, "[E1]"])
        >>> settings = TextSettings(vocabulary, added=(AddedToken("[E1]", 5),))
        >>> (step,) = extractions(settings, keeps_special_tokens=False)
        >>> list(step.parts("[E1] the"))
        [('', 0, 0), (5, 0, 4), (' the', 4, 8)]
    """
    special = tuple(map(AddedToken, SPECIAL_TOKENS)) if keeps_special_tokens else ()
    as_it_is = [*special, *(token for token in settings.added if not token.normalized)]
    normalized = [token for token in settings.added if token.normalized]
    steps = [[(token, re.escape(token.content)) for token in as_it_is]]
    if normalized:
        form = _NormalForm(settings)
        steps.append([(token, form.pattern(token.content)) for token in normalized])
    # What is nothing in its normal form would be found everywhere.
    found = ([pair for pair in step if pair[1]] for step in steps)
    return tuple(_extraction(step, settings) for step in found if step)


def cut_out(
    text: str, steps: tuple[Extraction, ...], begin: int = 0
) -> Iterator[tuple[str | int, int, int]]:
    """The parts of a text that are cut into words, and the ids of the added tokens between them.

    Each has its start and its end in the text.
    """
    if not steps:
        yield text, begin, begin + len(text)
        return
    for part, start, end in steps[0].parts(text):
        if isinstance(part, int):
            yield part, begin + start, begin + end
        else:
            yield from cut_out(part, steps[1:], begin + start)


def _extraction(step: list[tuple[AddedToken, str]], settings: "TextSettings") -> Extraction:
    longest_first = sorted(step, key=lambda pair: -len(pair[0].content))
    patterns = [
        f"{_BLANK}*" * token.lstrip + pattern + f"{_BLANK}*" * token.rstrip
        for token, pattern in longest_first
    ]
    ids = [settings.vocabulary.id_of(token.content) for token, _ in longest_first]
    return Extraction(f"(?:{'|'.join(patterns)})", tuple(zip(patterns, ids, strict=True)))


class _NormalForm:
    """What each character becomes before words are cut, and the characters that become it."""

    def __init__(self, settings: "TextSettings") -> None:
        self._table, self._settings = CharacterTable.load(), settings
        gone = self._table.facts & (DROPPED | (ACCENT if settings.removes_accents else 0)) > 0
        gone[[*SURROGATES]] = False
        self._gone = f"[{character_ranges(np.flatnonzero(gone))}]*"
        self._same = defaultdict(set)
        for character in {*self._table.lower_case, *self._table.decomposition}:
            self._same[self._of(character)].add(character)

    def pattern(self, content: str) -> str:
        kept = [character for character in content if self._of(character)]
        return self._gone.join(map(self._character, kept))

    def _character(self, character: str) -> str:
        form = self._of(character)
        if form == " ":
            return _BLANK
        found = {character, form, *self._same[form]}
        if self._settings.removes_accents or self._settings.composes:
            found.add(self._table.decompose(character))
            syllable, last = ord(character) - 0xAC00, (ord(character) - 0xAC00) % 28
            if 0 <= syllable < 11172 and last:  # Hangul: without its last consonant, then that
                found.add(chr(ord(character) - last) + chr(0x11A7 + last))
        return f"(?:{'|'.join(map(re.escape, sorted(found, key=lambda x: (-len(x), x))))})"

    def _of(self, character: str) -> str:
        if re.fullmatch(_BLANK, character):
            return " "
        if self._table.has(character, DROPPED):
            return ""
        text = character
        if self._settings.do_lower_case:
            text = "σ" if character == SIGMA else self._table.lower_case.get(character, character)
        if not self._settings.removes_accents:
            return text
        return "".join(c for c in self._table.decompose(text) if not self._table.has(c, ACCENT))
