"""A WordPiece vocabulary: the tokens, their ids, the five special ones, and where it is stored."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.files import not_utf8, open_whole, read_small

PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CONTINUATION = "##"  # how a token begins that continues a word
MAX_CHARACTERS_PER_WORD = 200  # a longer word is [UNK], in google's code

_MOST_MEBIBYTES, _MOST_TOKENS = 64, 1 << 24
_LONGEST_TOKEN = 256  # bytes; the kernels take no more


class Vocabulary:
    """The tokens of a vocabulary in the order of their ids.

    Args:
        tokens: the tokens; the token at position i has id i.
        name: what a message calls it, usually its file.

    Raises:
        UserError: there are no tokens, too many, an empty one, one twice, one that no file or no
            kernel can hold, or a special one is missing.

    Example:
        >>> vocabulary = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "word", "##s"])
        >>> len(vocabulary), vocabulary.id_of("##s"), vocabulary.mask_id, vocabulary.tokens[5]
        (7, 6, 4, 'word')
    """

    def __init__(self, tokens: Iterable[str], name: str = "the vocabulary") -> None:
        given: list[Any] = [tokens] if isinstance(tokens, os.PathLike) else list(tokens)
        if isinstance(tokens, str) or not all(isinstance(token, str) for token in given):
            raise UserError(f"{shown(tokens)} is no list of tokens; use Vocabulary.load(file).")
        self.tokens: tuple[str, ...] = tuple(given)
        self.name = name
        self._ids = {token: number for number, token in enumerate(self.tokens)}
        _check(self.tokens, self._ids, name)
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            self._ids[token] for token in SPECIAL_TOKENS
        )
        # Of the file as `write` writes it, whatever line ends it was read with.
        self.sha256 = hashlib.sha256(self.as_file()).hexdigest()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Vocabulary":
        """Reads a `vocab.txt`: UTF-8, one token a line; a BOM and Windows line ends are accepted.

        White space around a token is not part of it, as in the original. A line of white space of
        another kind (google's Chinese vocabulary has one, U+2028) is a token that no text has: it
        keeps its id. A `tokenizer.json` of transformers is read as well.

        Raises:
            UserError: the file is missing, empty, not UTF-8, or its tokens are no vocabulary.
        """
        if Path(path).suffix == ".json":
            from keras_bert_impl.tokenization.model_files import read_tokenizer_json

            return cls(read_tokenizer_json(path).tokens, str(path))
        content = read_small(path, _MOST_MEBIBYTES, "no vocabulary needs; name a vocab.txt")
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content[: error.start].count(b"\n") + 1
            raise not_utf8(path, f"line {line}") from error
        # Not `splitlines`: it cuts at U+2028, which is a token of google's Chinese vocabulary.
        lines = text.removesuffix("\n").split("\n")
        return cls(map(_stripped, lines), str(path))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the tokens as a `vocab.txt`.

        Raises:
            UserError: the file cannot be written.
        """
        with open_whole(Path(path), "wb") as file:
            file.write(self.as_file())

    def id_of(self, token: str) -> int:
        """The id of a token; a token that is not in the vocabulary has the id of `[UNK]`."""
        return self._ids.get(token, self.unk_id)

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.tokens == other.tokens

    def __hash__(self) -> int:
        return hash(self.sha256)

    def as_file(self) -> bytes:
        """The content of a `vocab.txt`."""
        return "".join(f"{token}\n" for token in self.tokens).encode("utf-8")


def _stripped(line: str) -> str:
    return line.strip() or line.strip(" \t\r")


def _check(tokens: tuple[str, ...], ids: dict[str, int], name: str) -> None:
    if not any(tokens):
        raise UserError(f"{name}: has no tokens; write one a line.")
    if len(tokens) > _MOST_TOKENS:
        raise UserError(f"{name}: has more than {_MOST_TOKENS} tokens; name a vocab.txt.")
    for number, token in enumerate(tokens, start=1):
        # Of a token that stands twice the original takes the last one.
        again = f"stands again as token {ids[token] + 1}" if ids[token] >= number else None
        if fault := again or _fault(token):
            raise UserError(
                f"{name}: token {number}, {shown(token)}, {fault}; write a token there that no "
                f"text has, such as [unused{number}] (without it, those after it get other ids)."
            )
    missing = [token for token in SPECIAL_TOKENS if token not in ids]
    if missing:
        raise UserError(
            f"{name}: has no {missing[0]} token; add a line '{missing[0]}' or name another file."
        )


def _fault(token: str) -> str | None:
    """Why a `vocab.txt` or the kernels cannot hold a token."""
    if token.isascii() and token.isprintable() and 0 < len(token.strip()) == len(token) <= 200:
        return None  # most of them
    if "\n" in token or not token or _stripped(token) != token:
        return "is empty, or has a line's end in it or blanks around it"
    if any("\ud800" <= character <= "\udfff" for character in token):
        return "is no text (half of a surrogate pair)"
    # The kernels' tokens have three bytes for some characters of two.
    part = token.removeprefix(CONTINUATION)
    size = sum(max(3, len(c.encode())) if c > "\x7f" else 1 for c in part)
    if size > _LONGEST_TOKEN and len(part) <= MAX_CHARACTERS_PER_WORD:
        return f"has more than {_LONGEST_TOKEN} bytes, which the tokenizer's kernels do not take"
    return None
