"""From texts and their ids to what a model reads: [CLS] A [SEP] B [SEP] in padded arrays.

Truncation is longest first, as in the original: it removes tokens one by one, always from the
longer segment, from B's where both are as long. What remains follows from the two lengths alone.
Which end the tokens are removed from is another rule: the back in fine-tuning, either end at random
in pre-training. `graph_rows` does the same in a TensorFlow graph.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.tokenization.long_texts import HEAD_TAIL, TRUNCATE, WINDOWS, head_length
from keras_bert_impl.tokenization.vocabulary import Vocabulary

ENCODER_INPUTS: tuple[str, ...] = ("input_ids", "input_mask", "segment_ids")
"""The names of what every BERT model reads, int32 [batch, length] each: the ids, padded with that
of [PAD]; 1 for a token and 0 for padding; 0 for [CLS] A [SEP] and padding, 1 for B [SEP]."""

EXAMPLE_WEIGHTS = "example_weights"
"""The feature that marks real examples: float32 [batch], 1 for a real row and 0 for padding."""


def _shortened(ids: Sequence[int] | np.ndarray, kept: int, long_text: str) -> list[int]:
    head = head_length(kept) if long_text == HEAD_TAIL else kept
    return [*ids[:head], *ids[len(ids) - (kept - head) :]]


def truncated_lengths(length_a: Any, length_b: Any, budget: Any, xp: Any = np) -> tuple[Any, Any]:
    """The lengths of both segments after truncation.

    `xp` computes: `numpy`, or `tensorflow` for int32 tensors [pairs].

    Example:
        >>> a, b = truncated_lengths(np.array([3, 9, 9, 5]), np.array([4, 2, 8, 6]), 10)
        >>> a.tolist(), b.tolist()
        ([3, 8, 5, 5], [4, 2, 5, 5])
    """
    excess = xp.maximum(length_a + length_b - budget, 0)
    # First the longer segment loses what it has more, then both lose in turns, B first.
    surplus_of_a = xp.minimum(xp.maximum(length_a - length_b, 0), excess)
    surplus_of_b = xp.minimum(xp.maximum(length_b - length_a, 0), excess)
    shared = excess - surplus_of_a - surplus_of_b
    kept_a = length_a - surplus_of_a - shared // 2
    return kept_a, length_b - surplus_of_b - (shared + 1) // 2


Text = str | bytes
_TEXTS = "give a text, a list of texts or a list of pairs"
_LINES = "give a list of lines, such as [text]"
Ids = Sequence[int] | np.ndarray


def as_texts(texts: Any, text_pairs: Any = None) -> tuple[list[Text], list[Text] | None]:
    """Gives a list of texts and, for pairs, the list of their second texts.

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


def as_lines(lines: Any) -> list[Text]:
    """A list of lines; one text alone is refused, which would be cut letter by letter."""
    if isinstance(lines, (str, bytes)):
        raise UserError(f"{shown(lines)} is a text alone; {_LINES}.")
    return _checked(_as_list(lines), _LINES)


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


def _checked(rows: list[Any], remedy: str = _TEXTS) -> list[Text]:
    for number, row in enumerate(rows):
        if not isinstance(row, (str, bytes)):
            raise UserError(f"text {number} is {shown(row)}; {remedy}.")
    return rows


def pack_batch(
    ids_a: Sequence[Ids],
    ids_b: Sequence[Ids] | None,
    vocabulary: Vocabulary,
    max_seq_length: int,
    pad_to_longest: bool = True,
    long_text: str = TRUNCATE,
) -> dict[str, np.ndarray]:
    """Packs a batch as [CLS] A [SEP] or [CLS] A [SEP] B [SEP], as in training.

    A second text without tokens counts as none. Arrays are int32 [batch, length].

    Example:
        >>> vocabulary = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"])
        >>> pack_batch([[5], [6, 5]], None, vocabulary, 512)["input_ids"].tolist()
        [[2, 5, 3, 0], [2, 6, 5, 3]]
    """
    seconds = ids_b or [()] * len(ids_a)
    # [CLS] A [SEP], never [CLS] A [SEP] [SEP], which no model was trained with.
    specials = [3 if len(second) else 2 for second in seconds]
    pairs = [*zip(ids_a, seconds, specials, strict=True)]
    needed = [len(first) + len(second) + more for first, second, more in pairs]
    if long_text == WINDOWS and max(needed, default=0) > max_seq_length:
        raise UserError(
            f"text {int(np.argmax(needed))} has {max(needed)} tokens, and the model reads texts of "
            f"more than {max_seq_length} in windows, which are several rows; ask `Predictor`, or "
            f'give `long_text="{TRUNCATE}"`.'
        )
    # A batch without texts has a length, too: that of [CLS] [SEP].
    length = min(max(needed, default=2), max_seq_length) if pad_to_longest else max_seq_length
    packed = {name: np.zeros((len(pairs), length), np.int32) for name in ENCODER_INPUTS}
    packed["input_ids"][:] = vocabulary.pad_id
    for row, (first, second, more) in enumerate(pairs):
        kept_a, kept_b = truncated_lengths(len(first), len(second), length - more)
        ids = [vocabulary.cls_id, *_shortened(first, kept_a, long_text), vocabulary.sep_id]
        end_of_a = len(ids)
        if len(second):
            ids += [*_shortened(second, kept_b, long_text), vocabulary.sep_id]
        packed["input_ids"][row, : len(ids)] = ids
        packed["input_mask"][row, : len(ids)] = 1
        packed["segment_ids"][row, end_of_a : len(ids)] = 1
    return packed


def text_ids(block: Any, vocabulary: Vocabulary, max_seq_length: int) -> list[np.ndarray]:
    """The ids of each text as `[CLS] text [SEP]`, truncated: int32 [length] each."""
    if len(block.offsets) == 1:
        return []
    first, last = (np.array([x], np.int32) for x in (vocabulary.cls_id, vocabulary.sep_id))
    texts = np.split(block.ids, block.offsets[1:-1])
    return [np.concatenate([first, text[: max_seq_length - 2], last]) for text in texts]
