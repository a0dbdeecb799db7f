import numpy as np
import pytest

from keras_bert_impl.tokenization.packing import pack_batch
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

VOCABULARY = Vocabulary([*SPECIAL_TOKENS, "a", "b"])
CLS, SEP, A, B = 2, 3, 5, 6


@pytest.mark.parametrize(
    ("ids_a", "ids_b", "input_ids", "input_mask", "segment_ids"),
    [
        ([A], None, [CLS, A, SEP, 0, 0], [1, 1, 1, 0, 0], [0, 0, 0, 0, 0]),
        ([A] * 9, None, [CLS, A, A, A, SEP], [1] * 5, [0] * 5),
        ([A], [B], [CLS, A, SEP, B, SEP], [1] * 5, [0, 0, 0, 1, 1]),
        ([A, A], [B, B], [CLS, A, SEP, B, SEP], [1] * 5, [0, 0, 0, 1, 1]),
        ([], [B], [CLS, SEP, B, SEP, 0], [1, 1, 1, 1, 0], [0, 0, 1, 1, 0]),
        ([], None, [CLS, SEP, 0, 0, 0], [1, 1, 0, 0, 0], [0] * 5),
    ],
)
def test_one_or_two_segments_of_length_five(ids_a, ids_b, input_ids, input_mask, segment_ids):
    seconds = None if ids_b is None else [ids_b]
    packed = pack_batch([ids_a], seconds, VOCABULARY, 5, pad_to_longest=False)
    assert [rows.tolist() for rows in packed.values()] == [[input_ids], [input_mask], [segment_ids]]
    assert all(rows.dtype == np.int32 for rows in packed.values())
