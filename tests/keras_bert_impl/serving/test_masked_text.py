import numpy as np
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.serving.masked_text import MaskedTextPacker
from keras_bert_impl.serving.signatures import graph_function, text_specs
from keras_bert_impl.tokenization.graph_tokenizer import GraphTokenizer
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from tests.support.model_folders import WORD_VOCABULARY, WORDS

MASK_ID, CLS_ID, SEP_ID = (
    WORD_VOCABULARY.mask_id,
    WORD_VOCABULARY.cls_id,
    WORD_VOCABULARY.sep_id,
)
TOKENIZER = GraphTokenizer(WORD_VOCABULARY, special_tokens="keep")
MAX_LENGTH = 8
PACKER = graph_function(
    MaskedTextPacker(TOKENIZER, WORD_VOCABULARY, MAX_LENGTH), text_specs("texts")
)


def test_mask_is_found_wherever_it_stands():
    packed = PACKER(tf.constant(["the [MASK] runs", "[MASK]s[MASK]."]))
    assert packed.input_ids.numpy().tolist() == [
        [CLS_ID, 5, MASK_ID, 8, SEP_ID, 0],
        [CLS_ID, MASK_ID, 1, MASK_ID, 13, SEP_ID],
    ]
    assert packed.masked_lm_positions.numpy().tolist() == [[2, 0], [1, 3]]
    assert packed.mask_counts.numpy().tolist() == [1, 2]
    assert packed.input_mask.numpy().tolist() == [[1, 1, 1, 1, 1, 0], [1] * 6]
    assert packed.pieces_left_out.numpy().tolist() == [0, 0]


def test_a_long_text_is_read_around_its_first_mask():
    text = "a a a a a dog [MASK] runs [MASK] . . . [MASK] . ."
    packed = PACKER(tf.constant([text]))
    pieces = [WORD_VOCABULARY.pieces[number] for number in packed.input_ids.numpy()[0]]
    assert pieces == ["[CLS]", "a", "a", "dog", "[MASK]", "runs", "[MASK]", "[SEP]"]
    assert packed.mask_counts.numpy().tolist() == [2]
    assert packed.pieces_left_out.numpy().tolist() == [9]


def test_near_an_end_of_a_long_text_all_room_is_used():
    start, end = PACKER(tf.constant(["[MASK]" + " a" * 9, "a " * 9 + "[MASK]"])).input_ids.numpy()
    assert start.tolist() == [CLS_ID, MASK_ID, 10, 10, 10, 10, 10, SEP_ID]
    assert end.tolist() == [CLS_ID, 10, 10, 10, 10, 10, MASK_ID, SEP_ID]


def test_a_text_without_mask_and_an_empty_batch_have_no_places():
    assert PACKER(tf.constant(["the dog", ""])).masked_lm_positions.shape == (2, 0)
    assert PACKER(tf.constant([], tf.string)).input_ids.shape[0] == 0


words = st.lists(st.sampled_from([*WORDS[:9], "unknown", "[MASK]", "[MASK]"]), max_size=14)


@settings(max_examples=15, deadline=None)
@given(st.lists(words.map(" ".join), min_size=1, max_size=12))
def test_what_is_packed_is_a_stretch_of_the_text_with_the_first_mask_in_it(texts):
    tokenizer = Tokenizer(WORD_VOCABULARY, special_tokens="keep")
    packed = PACKER(tf.constant(texts))
    for row, text in enumerate(texts):
        ids, length = tokenizer.encode(text), int(packed.input_mask[row].numpy().sum())
        inner = packed.input_ids[row, 1 : length - 1].numpy().tolist()
        assert len(inner) == min(len(ids), MAX_LENGTH - 2)
        assert len(inner) + packed.pieces_left_out[row] == len(ids)
        assert any(ids[at : at + len(inner)] == inner for at in range(len(ids) - len(inner) + 1))
        places = packed.masked_lm_positions[row, : packed.mask_counts[row]].numpy()
        assert (packed.input_ids[row].numpy()[places] == MASK_ID).all()
        assert len(places) == inner.count(MASK_ID)
        assert (MASK_ID in ids) == (MASK_ID in inner)
        assert np.count_nonzero(packed.segment_ids[row]) == 0
