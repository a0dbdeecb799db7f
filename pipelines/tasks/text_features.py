"""Texts and pairs of texts as the arrays that a BERT model reads."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_bert_impl.progress import Progress
from pipelines.tasks.task import Example

if TYPE_CHECKING:
    from keras_bert_impl.tokenization.tokenizer import Tokenizer

_BLOCK = 4096  # texts tokenized at once


def text_features(
    examples: Sequence[Example], tokenizer: "Tokenizer", max_seq_length: int
) -> dict[str, np.ndarray]:
    """Tokenizes and packs the texts: `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`, then padding.

    A second text that is empty, or has no pieces, counts as none, as in the original.

    Args:
        examples: what to pack.
        tokenizer: gives the pieces' ids.
        max_seq_length: pieces of a row; the longer text of a pair loses pieces first.

    Returns:
        `input_ids`, `input_mask` and `segment_ids`: int32 [examples, max_seq_length].

    Example:
        >>> from keras_bert_impl.tokenization.tokenizer import Tokenizer
        >>> from keras_bert_impl.tokenization.vocabulary import Vocabulary
        >>> pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "rain", "wet"]
        >>> example = Example("0", "Rain", "wet")
        >>> text_features([example], Tokenizer(Vocabulary(pieces)), 7)["input_ids"].tolist()
        [[2, 5, 3, 6, 3, 0, 0]]
    """
    from keras_bert_impl.tokenization.packing import pack_pair

    shape = (len(examples), max_seq_length)
    features = {
        name: np.zeros(shape, np.int32) for name in ("input_ids", "input_mask", "segment_ids")
    }
    progress = Progress("tokenize", len(examples), "examples")
    for start in range(0, len(examples), _BLOCK):
        block = examples[start : start + _BLOCK]
        first = tokenizer.encode_lines([example.text_a for example in block])
        second = tokenizer.encode_lines([example.text_b or "" for example in block])
        for row in range(len(block)):
            ids_a = first.ids[first.offsets[row] : first.offsets[row + 1]]
            ids_b = second.ids[second.offsets[row] : second.offsets[row + 1]]
            packed = pack_pair(
                ids_a, ids_b if len(ids_b) else None, max_seq_length, tokenizer.vocabulary
            )
            for array, values in zip(features.values(), packed, strict=True):
                array[start + row] = values
        progress.advance(len(block))
    progress.close()
    return features
