import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.preprocessor import BertPreprocessor
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from tests.support.model_folders import WORD_VOCABULARY, WORDS

SETTINGS = TextSettings(WORD_VOCABULARY)
TOKENIZER = Tokenizer(SETTINGS)
FIXED = BertPreprocessor(SETTINGS, max_seq_length=9)
LONGEST = BertPreprocessor(SETTINGS, max_seq_length=9, pad_to_longest=True)
TEXTS = st.lists(st.sampled_from([*WORDS[:9], "unknown", "각"]), max_size=9).map(" ".join)


def assert_same(packed, expected):
    assert list(packed) == list(expected)
    for name, values in packed.items():
        assert values.dtype == tf.int32
        np.testing.assert_array_equal(values.numpy(), expected[name])


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4), st.booleans())
def test_it_gives_what_the_tokenizer_gives(rows, pairs):
    first, second = [a for a, _ in rows], [b for _, b in rows] if pairs else None
    assert_same(LONGEST(first, second), TOKENIZER(first, second, max_seq_length=9))
    assert_same(
        FIXED(first, second), TOKENIZER(first, second, max_seq_length=9, pad_to_longest=False)
    )


def test_it_maps_a_dataset_before_and_after_batching():
    texts = tf.data.Dataset.from_tensor_slices((["the dog", "dogs run."], [0, 1]))
    expected = TOKENIZER(["the dog", "dogs run."], max_seq_length=9, pad_to_longest=False)
    before = texts.map(lambda text, label: (FIXED(text), label)).batch(2)
    after = texts.batch(2).map(lambda text, label: (FIXED(text), label))
    for dataset in (before, after):
        assert dataset.element_spec[0]["input_ids"].shape.as_list() == [None, 9]
        [(packed, labels)] = list(dataset)
        assert_same(packed, expected)
        assert labels.numpy().tolist() == [0, 1]


PAIRS = [("the dog", "runs"), ("dogs", "the cat")]
FIRSTS, SECONDS = (tf.constant(texts) for texts in zip(*PAIRS, strict=True))


@pytest.mark.parametrize(
    "pairs",
    [
        PAIRS,
        (FIRSTS, SECONDS),
        [FIRSTS, SECONDS],
        (FIRSTS[:, None], SECONDS[:, None]),
        (FIRSTS.numpy(), SECONDS.numpy()),
    ],
    ids=["tuples", "two tensors", "list of tensors", "columns", "arrays"],
)
def test_pairs_in_one_argument_are_pairs(pairs):
    assert_same(FIXED(pairs), TOKENIZER(PAIRS, max_seq_length=9, pad_to_longest=False))


def test_two_texts_are_a_pair_as_a_tuple_and_two_texts_as_a_list():
    pair = TOKENIZER(("the dog", "runs"), max_seq_length=9, pad_to_longest=False)
    assert_same(FIXED(("the dog", "runs")), {name: rows[0] for name, rows in pair.items()})
    texts = TOKENIZER(["the dog", "runs"], max_seq_length=9, pad_to_longest=False)
    assert_same(FIXED(["the dog", "runs"]), texts)
    assert_same(FIXED(tf.constant([["the dog"], ["runs"]])), texts)


@pytest.mark.parametrize(
    ("texts", "text_pairs", "sentence"),
    [
        (tf.constant([["a", "b"], ["c", "d"]]), None, r"shape \[2, 2\] are neither \[batch\]"),
        (keras.Input((2,), dtype="string"), None, r"shape \[None, 2\] are neither \[batch\]"),
        ((["a", "b"], ["c", "d"]), None, "two columns or two pairs; give the first and the second"),
        (["a", "b"], ["c"], r"the shape \[2\], but the second texts \[1\]; give as many"),
    ],
)
def test_texts_of_another_shape_are_refused(texts, text_pairs, sentence):
    with pytest.raises(UserError, match=sentence):
        FIXED(texts, text_pairs)


@pytest.mark.parametrize("layer", [FIXED, LONGEST], ids=["fixed", "longest"])
def test_a_model_of_strings_is_saved_and_loaded(layer, tmp_path):
    text, pair = keras.Input((), dtype="string"), keras.Input((), dtype="string")
    packed = layer(text, pair)
    assert packed["input_ids"].shape == (None, None if layer.pad_to_longest else 9)
    model = keras.Model([text, pair], packed)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    texts = [tf.constant(["the dog", "dogs"]), tf.constant(["runs", ""])]
    for name, values in model(texts).items():
        np.testing.assert_array_equal(values.numpy(), again(texts)[name].numpy())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"max_seq_length": 2}, "max_seq_length is 2; it must be 3 or more"),
        ({"max_seq_length": None}, "max_seq_length is None; it must be a whole number"),
        ({"special_tokens": "x"}, "special_tokens is 'x'; it must be one of split, keep"),
    ],
)
def test_a_length_without_room_and_an_unknown_choice_are_refused(options, sentence):
    with pytest.raises(UserError, match=sentence):
        BertPreprocessor(SETTINGS, **options)
