"""How text becomes ids: the vocabulary, the casing, the accents and the form, as one value.

These belong together and travel together: into the tokenizers, into a model directory, into
the description of shards. Two models whose settings are equal read the same text as the same ids.
"""

import dataclasses
from typing import Any, Literal, NamedTuple

from keras_bert_impl.errors import UserError, check_kind, shown
from keras_bert_impl.json_files import argument
from keras_bert_impl.tokenization.added_tokens import AddedToken
from keras_bert_impl.tokenization.reference import without_accents
from keras_bert_impl.tokenization.vocabulary import MAX_CHARACTERS_PER_WORD, Vocabulary

AS_IS, NFC = "as_is", "nfc"
REMEDY = "give TextSettings(Vocabulary.load(file)), or use from_pretrained(model)"
LONGEST_WORD = "max_input_chars_per_word"


class Casing(NamedTuple):
    """Casing, accents and form as a file, or a caller, gives them; None is "nothing is said"."""

    do_lower_case: bool | None = None
    strip_accents: bool | None = None
    unicode_form: str | None = None
    added: tuple[AddedToken, ...] = ()
    longest_word: int | None = None

    @classmethod
    def taken_from(cls, values: dict[str, Any]) -> "Casing":
        """Takes what `TextSettings.as_json` wrote out of an object."""
        added = values.pop("added_tokens_decoder", {})
        longest_word = values.pop(LONGEST_WORD, None)
        names = ("do_lower_case", "strip_accents", "unicode_form")
        said = {name: values.pop(name) for name in names if name in values}
        flags = ("content", "lstrip", "rstrip", "normalized")
        return cls(
            **said,
            added=tuple(
                AddedToken(id=int(number), **{name: token[name] for name in flags})
                for number, token in added.items()
            ),
            longest_word=longest_word,
        )

    def settings(self, vocabulary: Vocabulary) -> "TextSettings":
        """The settings with a vocabulary; what is not said is as in google's code."""
        whole = _with_added(vocabulary, self.added)
        return TextSettings(
            whole,
            self.do_lower_case is not False,
            self.strip_accents,
            self.unicode_form or AS_IS,
            tuple(token._replace(id=whole.id_of(token.content)) for token in self.added),
            self.longest_word or MAX_CHARACTERS_PER_WORD,
        )


def _with_added(vocabulary: Vocabulary, added: tuple[AddedToken, ...]) -> Vocabulary:
    """The vocabulary with the added tokens that it lacks, at its end."""
    tokens = [*vocabulary.tokens]
    known = {token: number for number, token in enumerate(tokens)}
    for token in sorted(added, key=lambda one: len(tokens) if one.id is None else one.id):
        number = known.setdefault(token.content, len(tokens))
        if number == len(tokens):
            tokens.append(token.content)
        if token.id not in (None, number):
            raise UserError(
                f"{vocabulary.name}: the added token {shown(token.content)} has the id {token.id} "
                f"in a file beside it, but would be {number} here; get the model's files again."
            )
    whole = len(tokens) > len(vocabulary)
    return Vocabulary(tokens, vocabulary.name) if whole else vocabulary


@dataclasses.dataclass(frozen=True)
class TextSettings:
    """How text becomes ids.

    Attributes:
        vocabulary: the tokens that the ids mean.
        do_lower_case: whether text is lower-cased.
        strip_accents: whether accents are removed; None means "exactly where text is lower-cased",
            as in google's code. (Hugging Face calls the same choice `strip_accents`.)
        unicode_form: "nfc" composes text before anything else; "as_is" does not, as in google's
            code. Tokens keep their places in the text as it is.
        added: the tokens of the vocabulary that are taken out of a text before anything else.
        longest_word: the most characters of a word; a longer one is [UNK]. It is 200 in google's
            code and 100 in Hugging Face's, whose files say it.

    Example:
        >>> vocabulary = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "word"])
        >>> settings = TextSettings(vocabulary)
        >>> settings.do_lower_case, settings.strip_accents, settings.removes_accents
        (True, None, True)
        >>> settings == TextSettings(vocabulary, do_lower_case=False)
        False
    """

    vocabulary: Vocabulary
    do_lower_case: bool = True
    strip_accents: bool | None = None
    unicode_form: str = AS_IS
    added: tuple[AddedToken, ...] = ()
    longest_word: int = MAX_CHARACTERS_PER_WORD

    def __post_init__(self) -> None:
        check_kind(self.vocabulary, Vocabulary, "give Vocabulary.load(file), or Vocabulary(tokens)")
        argument("do_lower_case", self.do_lower_case, bool)
        argument("strip_accents", self.strip_accents, bool | None)
        argument("unicode_form", self.unicode_form, Literal["as_is", "nfc"])

    @property
    def composes(self) -> bool:
        """Whether text is composed (Unicode's NFC)."""
        return self.unicode_form == NFC

    @property
    def removes_accents(self) -> bool:
        """Whether accents are removed, with the default settled."""
        return self.do_lower_case if self.strip_accents is None else self.strip_accents

    def as_json(self) -> dict[str, Any]:
        """What `tokenizer_config.json` says of it, and the form where it is not the usual one."""
        form = {"unicode_form": self.unicode_form} if self.composes else {}
        added = {str(token.id): token.as_json() for token in self.added}
        usual = self.longest_word == MAX_CHARACTERS_PER_WORD
        return {
            "do_lower_case": self.do_lower_case,
            "strip_accents": self.strip_accents,
            **form,
            **({"added_tokens_decoder": added} if added else {}),
            **({} if usual else {LONGEST_WORD: self.longest_word}),
        }

    def contradiction(self) -> str | None:
        """Says what is wrong where the casing does not go with the vocabulary."""
        # Tokens in brackets, [CLS] and [unused1], never come out of text.
        words = [token for token in self.vocabulary.tokens if not token.startswith("[")]
        if self.do_lower_case:
            marks = without_accents if self.removes_accents else str
            lost = sum(
                token != (token if token.isascii() else marks(token)).lower() for token in words
            )
            if lost <= max(len(words) // 20, 10):
                return None
            return (
                f"do_lower_case is on, but {lost} of {len(self.vocabulary)} tokens of the "
                "vocabulary have capitals or accents and can never be used: is this a cased "
                "vocabulary?"
            )
        # Few letters with two cases prove nothing: it may be a Chinese or Korean vocabulary.
        small = sum(token != token.upper() for token in words)
        if small <= 1000 or any(token != token.lower() for token in words):
            return None
        return (
            f"do_lower_case is off, but none of the {len(self.vocabulary)} tokens of the "
            "vocabulary has capitals, so that words with capitals become [UNK]: is this an "
            "uncased vocabulary?"
        )
