"""From the ids of one or two segments to what the model reads: [CLS] A [SEP] B [SEP]."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.truncation import truncated_lengths
from keras_bert_impl.tokenization.vocabulary import Vocabulary


class PackedInput(NamedTuple):
    """The three inputs of the model, int32 [length] each.

    Attributes:
        input_ids: the ids, padded with that of [PAD].
        input_mask: 1 for a token, 0 for padding.
        segment_ids: 0 for [CLS] A [SEP] and padding, 1 for B [SEP].
    """

    input_ids: np.ndarray
    input_mask: np.ndarray
    segment_ids: np.ndarray


ENCODER_INPUTS: tuple[str, ...] = PackedInput._fields
"""The names of what every BERT model reads, int32 [batch, length] each."""


def pack_pair(
    ids_a: Sequence[int] | np.ndarray,
    ids_b: Sequence[int] | np.ndarray | None,
    max_seq_length: int,
    vocabulary: Vocabulary,
) -> PackedInput:
    """Packs one segment (`ids_b` is None) or two into inputs of length `max_seq_length`.

    Raises:
        UserError: `max_seq_length` has no room for the special tokens.

    Example:
        >>> vocabulary = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"])
        >>> packed = pack_pair([5, 5, 5], [6], 8, vocabulary)
        >>> packed.input_ids.tolist(), packed.segment_ids.tolist()
        ([2, 5, 5, 5, 3, 6, 3, 0], [0, 0, 0, 0, 0, 1, 1, 0])
    """
    specials = 2 if ids_b is None else 3
    if max_seq_length < specials:
        raise UserError(
            f"max_seq_length={max_seq_length} has no room for {specials} special tokens; raise it."
        )
    second = [] if ids_b is None else ids_b
    kept_a, kept_b = truncated_lengths(len(ids_a), len(second), max_seq_length - specials)
    ids = [vocabulary.cls_id, *ids_a[:kept_a], vocabulary.sep_id]
    end_of_a = len(ids)
    if ids_b is not None:
        ids += [*second[:kept_b], vocabulary.sep_id]
    input_ids = np.full(max_seq_length, vocabulary.pad_id, np.int32)
    input_ids[: len(ids)] = ids
    positions = np.arange(max_seq_length)
    return PackedInput(
        input_ids=input_ids,
        input_mask=(positions < len(ids)).astype(np.int32),
        segment_ids=((positions >= end_of_a) & (positions < len(ids))).astype(np.int32),
    )
