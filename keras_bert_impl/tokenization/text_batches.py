"""Texts as a user has them (one, a list, pairs) and the padded arrays that a model takes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS, pack_pair
from keras_bert_impl.tokenization.vocabulary import Vocabulary

Text = str | bytes
Ids = Sequence[int] | np.ndarray


def as_texts(texts: Any, text_pairs: Any = None) -> tuple[list[Text], list[Text] | None]:
    """Gives a list of texts and, for pairs, the list of their second texts.

    Args:
        texts: a text; a list, an array or a tensor of texts; a pair of texts (a tuple of two); or
            a list of pairs.
        text_pairs: the second texts, where they are given apart: a text or as many as `texts`.

    Raises:
        UserError: something is no text, or the two lists differ in length.

    Example:
        >>> as_texts("a"), as_texts(["a", "b"]), as_texts([("a", "b"), ("c", "d")])
        ((['a'], None), (['a', 'b'], None), (['a', 'c'], ['b', 'd']))
        >>> as_texts("a", "b") == as_texts(("a", "b"))
        True
    """
    if text_pairs is None and _is_pair(texts) and isinstance(texts, tuple):
        texts = [texts]
    rows = _as_list(texts)
    if text_pairs is not None:
        seconds = _as_list(text_pairs)
        if len(rows) != len(seconds):
            raise UserError(
                f"there are {len(rows)} texts, but {len(seconds)} second texts; give as many."
            )
        return _checked(rows), _checked(seconds)
    if rows and all(_is_pair(row) for row in rows):
        return [row[0] for row in rows], [row[1] for row in rows]
    return _checked(rows), None


def _as_list(texts: Any) -> list[Any]:
    if isinstance(texts, (str, bytes)):
        return [texts]
    if isinstance(texts, (list, tuple)):
        return list(texts)
    array = np.asarray(texts)  # an array, a tensor or a column of a table
    return np.atleast_1d(array).tolist()


def _is_pair(row: Any) -> bool:
    return (
        isinstance(row, (list, tuple))
        and len(row) == 2
        and all(isinstance(text, (str, bytes)) for text in row)
    )


def _checked(rows: list[Any]) -> list[Text]:
    for number, row in enumerate(rows):
        if not isinstance(row, (str, bytes)):
            raise UserError(
                f"text {number} is {row!r}; give a text, a list of texts or a list of pairs."
            )
    return rows


def pack_batch(
    ids_a: Sequence[Ids],
    ids_b: Sequence[Ids] | None,
    vocabulary: Vocabulary,
    max_seq_length: int,
    pad_to_longest: bool = True,
) -> dict[str, np.ndarray]:
    """Packs a batch as [CLS] A [SEP] or [CLS] A [SEP] B [SEP], as in training.

    A second text without tokens counts as none.

    Args:
        ids_a: the ids of each first text.
        ids_b: those of each second text.
        vocabulary: has the special tokens.
        max_seq_length: longer texts are truncated to this many tokens; see `pack_pair`.
        pad_to_longest: whether rows are as long as the longest of the batch, not `max_seq_length`.

    Returns:
        `input_ids`, `input_mask` and `segment_ids`, int32 [batch, length] each.

    Example:
        >>> vocabulary = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"])
        >>> pack_batch([[5], [6, 5]], None, vocabulary, 512)["input_ids"].tolist()
        [[2, 5, 3, 0], [2, 6, 5, 3]]
    """
    seconds: list[Ids | None] = [row if len(row) else None for row in ids_b or [()] * len(ids_a)]
    needed = [
        len(first) + 2 + (0 if second is None else len(second) + 1)
        for first, second in zip(ids_a, seconds, strict=True)
    ]
    length = min(max(needed, default=2), max_seq_length) if pad_to_longest else max_seq_length
    packed = [
        pack_pair(first, second, length, vocabulary)
        for first, second in zip(ids_a, seconds, strict=True)
    ]
    return {
        name: np.array([row[number] for row in packed], np.int32).reshape(-1, length)
        for number, name in enumerate(ENCODER_INPUTS)
    }
