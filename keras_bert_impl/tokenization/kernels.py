"""The kernels of tensorflow-text, called without the wrappers around them.

They work in eager mode and in graphs; for a single line the wrappers would cost more than the work.
`compat` loads their libraries without the package around them.
"""

from typing import Any, NamedTuple

from keras_bert_impl.compat import text_operations

_normalizer = text_operations("_fast_bert_normalizer")
_wordpiece = text_operations("_fast_wordpiece_tokenizer")


class CutTokens(NamedTuple):
    """The tokens of many lines: one flat tensor for each property.

    Attributes:
        ids: int64 [tokens].
        row_splits: line i has the tokens from row_splits[i] to row_splits[i + 1],
            int64 [lines + 1].
        starts: the byte of the line at which a token begins, int64 [tokens].
        ends: the byte after a token's last, int64 [tokens].
    """

    ids: Any
    row_splits: Any
    starts: Any
    ends: Any


class Replaced(NamedTuple):
    """Lines in which characters were replaced.

    Attributes:
        lines: string [lines].
        positions: for each byte of a replaced line and for its end, where in the original line the
            character stands that it came from, int64 [positions]; empty unless asked for.
        row_splits: line i has the positions from row_splits[i] to row_splits[i + 1],
            int64 [lines + 1].
    """

    lines: Any
    positions: Any
    row_splits: Any


def replace_characters(lines: Any, normalizer_model: Any, with_places: bool = False) -> Replaced:
    """Replaces the characters of lines as the model says."""
    return Replaced(
        *_normalizer.fast_bert_normalize(lines, normalizer_model, get_offsets=with_places)
    )


def composed_characters(lines: Any) -> Any:
    """Composes the characters of lines (Unicode's NFC)."""
    return text_operations("_normalize_ops").normalize_utf8(lines, normalization_form="NFC")


def cut_tokens(lines: Any, wordpiece_model: Any) -> CutTokens:
    """Cuts lines into tokens at white space, punctuation and by the model's vocabulary."""
    _, ids, row_splits, starts, ends = _wordpiece.fast_wordpiece_tokenize_with_offsets(
        lines, wordpiece_model
    )
    return CutTokens(ids, row_splits, starts, ends)
