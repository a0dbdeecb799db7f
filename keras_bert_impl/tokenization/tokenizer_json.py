"""The vocabulary and the casing in a `tokenizer.json`, as transformers saves them today."""

import dataclasses
import os
from typing import Any

from keras_bert_impl.config import read_json_object
from keras_bert_impl.errors import UserError


@dataclasses.dataclass(frozen=True)
class TokenizerFile:
    """What a `tokenizer.json` says.

    Attributes:
        pieces: the pieces in the order of their ids, added tokens included.
        do_lower_case: whether text is lower-cased; None where the file leaves it open.
        strip_accents: whether accents are removed; None means "as `do_lower_case`".
    """

    pieces: tuple[str, ...]
    do_lower_case: bool | None
    strip_accents: bool | None


def read_tokenizer_json(path: str | os.PathLike[str]) -> TokenizerFile:
    """Reads a `tokenizer.json`.

    Raises:
        UserError: no such file, another kind of tokenizer than WordPiece, or ids with gaps.
    """
    values = read_json_object(path)
    model = values.get("model")
    kind = model.get("type", "WordPiece") if isinstance(model, dict) else None
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if kind != "WordPiece" or not isinstance(vocabulary, dict):
        raise UserError(
            f"{path}: is no WordPiece tokenizer but {kind or 'none that is known'}; name BERT's "
            "own vocab.txt."
        )
    normalizer = values.get("normalizer")
    rules = normalizer if isinstance(normalizer, dict) else {}
    rules = rules if rules.get("type") == "BertNormalizer" else {}
    if rules.get("handle_chinese_chars") is False:
        raise UserError(
            f"{path}: does not put spaces round Chinese characters (handle_chinese_chars is "
            "false), which BERT's tokenizer always does; name a tokenizer of the original's kind."
        )
    lower, accents = rules.get("lowercase"), rules.get("strip_accents")
    return TokenizerFile(
        _in_order(path, {**vocabulary, **_added(path, values.get("added_tokens"))}),
        lower if isinstance(lower, bool) else None,
        accents if isinstance(accents, bool) else None,
    )


def _added(path: str | os.PathLike[str], tokens: Any) -> dict[str, Any]:
    if not isinstance(tokens or [], list):
        raise UserError(
            f"{path}: its added_tokens are no list; save the tokenizer again, or name a vocab.txt."
        )
    rows = [row for row in tokens or () if isinstance(row, dict)]
    return {str(row.get("content")): row.get("id") for row in rows}


def _in_order(path: str | os.PathLike[str], ids: dict[str, Any]) -> tuple[str, ...]:
    pieces = {number: piece for piece, number in ids.items() if type(number) is int}
    if set(pieces) != set(range(len(ids))):
        raise UserError(
            f"{path}: its {len(ids)} pieces do not have the ids from 0 to {len(ids) - 1}, each "
            "once; save the tokenizer again, or name a vocab.txt."
        )
    return tuple(_text(path, pieces[number]) for number in range(len(ids)))


def _text(path: str | os.PathLike[str], piece: str) -> str:
    try:
        piece.encode()
    except UnicodeEncodeError as error:  # half of a pair that stands for one character
        raise UserError(
            f"{path}: its piece {piece!r} is no text; save the tokenizer again, or name a "
            "vocab.txt."
        ) from error
    return piece
