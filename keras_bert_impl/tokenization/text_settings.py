"""How text becomes ids: the vocabulary, the casing, the accents and the form, as one value.

These belong together and travel together: into the tokenizers, into a model directory, into
the description of shards. Two models whose settings are equal read the same text as the same ids.
"""

import dataclasses
from typing import Any, NamedTuple

from keras_bert_impl.tokenization.reference import without_accents
from keras_bert_impl.tokenization.vocabulary import Vocabulary

AS_IS, NFC = "as_is", "nfc"


class Casing(NamedTuple):
    """Casing, accents and form as a file, or a caller, gives them; None is "nothing is said"."""

    do_lower_case: bool | None = None
    strip_accents: bool | None = None
    unicode_form: str | None = None

    def settings(self, vocabulary: Vocabulary) -> "TextSettings":
        """The settings with a vocabulary; what is not said is as in google's code."""
        return TextSettings(
            vocabulary,
            self.do_lower_case is not False,
            self.strip_accents,
            self.unicode_form or AS_IS,
        )


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

    @property
    def composes(self) -> bool:
        """Whether text is composed (Unicode's NFC)."""
        return self.unicode_form == NFC

    @property
    def removes_accents(self) -> bool:
        """Whether accents are removed, with the default settled."""
        return self.do_lower_case if self.strip_accents is None else self.strip_accents

    def as_json(self) -> dict[str, Any]:
        """What `tokenizer_config.json` says of it, and the form where that is another than usual.

        `transformers` leaves the form alone.
        """
        form = {"unicode_form": self.unicode_form} if self.composes else {}
        return {"do_lower_case": self.do_lower_case, "strip_accents": self.strip_accents, **form}

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
