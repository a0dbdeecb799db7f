"""A WordPiece vocabulary: the pieces, their ids, and the five special ones."""

import hashlib
import os
import unicodedata
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_input, open_whole
from keras_bert_impl.tokenization.tokenizer_json import read_tokenizer_json

PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CONTINUATION = "##"  # how a piece begins that continues a word


class Vocabulary:
    """The pieces of a vocabulary in the order of their ids.

    Args:
        pieces: the pieces; the piece at position i has id i.
        name: what an error message calls it, usually its file.

    Raises:
        UserError: there are no pieces, an empty one, one twice, or a special one is missing.

    Example:
        >>> vocabulary = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "word", "##s"])
        >>> len(vocabulary), vocabulary.id_of("##s"), vocabulary.mask_id, vocabulary.pieces[5]
        (7, 6, 4, 'word')
    """

    def __init__(self, pieces: Iterable[str], name: str = "the vocabulary") -> None:
        self.pieces: tuple[str, ...] = tuple(pieces)
        self._ids = {piece: number for number, piece in enumerate(self.pieces)}
        _check(self.pieces, self._ids, name)
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            self._ids[piece] for piece in SPECIAL_TOKENS
        )
        self.sha256 = hashlib.sha256(self._as_file()).hexdigest()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Vocabulary":
        """Reads a `vocab.txt`: UTF-8, one piece a line; a BOM and Windows line ends are accepted.

        White space around a piece is not part of it, as in the original. A line of white space of
        another kind (google's Chinese vocabulary has one, U+2028) is a piece that no text has: it
        keeps its id. A `tokenizer.json` of transformers is read as well.

        Raises:
            UserError: the file is missing, empty, not UTF-8, or its pieces are no vocabulary.
        """
        if Path(path).suffix == ".json":
            return cls(read_tokenizer_json(path).pieces, str(path))
        with open_input(path) as file:
            content = file.read()
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content[: error.start].count(b"\n") + 1
            raise UserError(f"{path}: line {line} is not UTF-8; convert the file to it.") from error
        lines = text.removesuffix("\n").split("\n")
        return cls((line.strip() or line.strip(" \t\r") for line in lines), str(path))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the pieces as a `vocab.txt`.

        Raises:
            UserError: the file cannot be written.
        """
        with open_whole(Path(path), "wb") as file:
            file.write(self._as_file())

    def id_of(self, piece: str) -> int:
        """The id of a piece; a piece that is not in the vocabulary has the id of `[UNK]`."""
        return self._ids.get(piece, self.unk_id)

    def __len__(self) -> int:
        return len(self.pieces)

    def __contains__(self, piece: object) -> bool:
        return piece in self._ids

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.pieces == other.pieces

    def __hash__(self) -> int:
        return hash(self.sha256)

    def _as_file(self) -> bytes:
        return "".join(f"{piece}\n" for piece in self.pieces).encode("utf-8")


def _check(pieces: tuple[str, ...], ids: dict[str, int], name: str) -> None:
    if not any(pieces):
        raise UserError(f"{name}: has no pieces; write one a line.")
    if "" in ids:
        line = pieces.index("") + 1
        raise UserError(
            f"{name}: line {line} is empty; write a piece there that no text has, such as "
            f"[unused{line}] (without the line, the pieces behind it would get other ids)."
        )
    if len(ids) < len(pieces):
        piece, _ = Counter(pieces).most_common(1)[0]
        first = pieces.index(piece)
        lines = f"{first + 1} and {pieces.index(piece, first + 1) + 1}"
        raise UserError(
            f"{name}: '{piece}' stands on lines {lines}; make the first a piece that no text has, "
            f"such as [unused{first + 1}] (the original takes the last one)."
        )
    missing = [piece for piece in SPECIAL_TOKENS if piece not in ids]
    if missing:
        raise UserError(
            f"{name}: has no {missing[0]} piece; add a line '{missing[0]}' or name another file."
        )


def contradiction_of_casing(
    vocabulary: Vocabulary, do_lower_case: bool, strip_accents: bool | None = None
) -> str | None:
    """Says what is wrong where the casing of text and of the vocabulary do not go together.

    Args:
        vocabulary: the pieces.
        do_lower_case: whether text is lower-cased.
        strip_accents: whether accents are removed; None is "as `do_lower_case`".

    Returns:
        A sentence, or None.

    Example:
        >>> pieces = [*SPECIAL_TOKENS, *(f"Word{number}" for number in range(100))]
        >>> contradiction_of_casing(Vocabulary(pieces), do_lower_case=True)
        'do_lower_case is on, but 100 of 105 pieces of the vocabulary have capitals ...'
    """
    words = [piece for piece in vocabulary.pieces if not piece.startswith("[")]
    capitals = sum(piece != piece.lower() for piece in words)
    apart = 0
    if do_lower_case and strip_accents is not False:
        # Stripping accents takes characters apart (NFD): every Hangul syllable, too.
        apart = sum(
            piece == piece.lower() and not unicodedata.is_normalized("NFD", piece)
            for piece in words
            if not piece.isascii()
        )
    if do_lower_case and capitals + apart > max(len(words) // 20, 10):
        what = "capitals" if not apart else "capitals, accents or Hangul syllables"
        return (
            f"do_lower_case is on, but {capitals + apart} of {len(vocabulary)} pieces of the "
            f"vocabulary have {what} and can never be used: is this a cased vocabulary?"
        )
    small = sum(piece != piece.upper() for piece in words)
    if not do_lower_case and not capitals and small > 1000:
        return (
            f"do_lower_case is off, but none of the {len(vocabulary)} pieces of the vocabulary has "
            "capitals, so that words with capitals become [UNK]: is this an uncased vocabulary?"
        )
    return None
