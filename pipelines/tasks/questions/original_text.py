"""From the tokens of a span back to the words of the passage, as the original does it.

The original joins the passage's words with single blanks, cuts off what does not belong to the
span ("Steve Smith's" → "Steve Smith") by comparing characters, and gives up where the numbers of
characters differ. Its files need exactly that; the characters of a span are `text_start` and
`text_end` of its tokens.
"""

import re
from collections.abc import Sequence

from keras_bert_impl.tokenization.reference import split_words
from keras_bert_impl.tokenization.text_settings import Casing

_ASCII_WORDS = re.compile(r"[A-Za-z0-9]+|[^A-Za-z0-9 ]")


def join_tokens(tokens: Sequence[str]) -> str:
    """The text of WordPiece tokens.

    Example:
        >>> join_tokens(["rain", "##ed", ",", "then"])
        'rained , then'
    """
    return " ".join(" ".join(tokens).replace(" ##", "").replace("##", "").split())


def find_original_text(span: str, words: str, casing: Casing) -> str:
    """Finds the part of some words of the passage that a span of tokens stands for.

    Args:
        span: the text of the span's tokens.
        words: the passage's words that the span touches, joined with single blanks.
        casing: of the model.

    Returns:
        A part of `words`, or all of it where the two cannot be aligned.

    Example:
        >>> find_original_text("steve smith", "Steve Smith's", Casing(do_lower_case=True))
        'Steve Smith'
        >>> find_original_text("[UNK] smith", "☂ Smith's", Casing(do_lower_case=True))
        "☂ Smith's"
    """
    normalized = " ".join(_normalized_words(words, casing))
    first = normalized.find(span)
    if first < 0 or not span:
        return words
    last = first + len(span) - 1
    if normalized[first] == " " or normalized[last] == " ":
        return words
    positions = [at for at, character in enumerate(words) if character != " "]
    if len(positions) != len(normalized) - normalized.count(" "):
        return words
    start = first - normalized.count(" ", 0, first)
    end = last - normalized.count(" ", 0, last)
    return words[positions[start] : positions[end] + 1]


def _normalized_words(text: str, casing: Casing) -> list[str]:
    if text.isascii() and text.isprintable():  # the same, faster
        return _ASCII_WORDS.findall(text.lower() if casing.do_lower_case else text)
    return split_words(text, bool(casing.do_lower_case), casing.strip_accents)
