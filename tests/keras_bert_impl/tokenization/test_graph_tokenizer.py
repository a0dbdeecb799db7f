import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keras_bert_impl.tokenization.graph_rows import pack_in_graph
from keras_bert_impl.tokenization.packing import pack_pair
from keras_bert_impl.tokenization.preprocessor import GraphTokenizer
from keras_bert_impl.tokenization.reference import as_text
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support import programs
from tests.support.tokenization import alphabet_vocabulary, expected_ids, trouble_text

VOCABULARY = Vocabulary([*SPECIAL_TOKENS, *"abcdefgh"])
SEGMENT = st.lists(st.integers(5, 12), max_size=14)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(SEGMENT, SEGMENT), min_size=1, max_size=4), st.booleans())
def test_rows_are_packed_as_one_by_one(rows, pairs):
    segments_a = tf.ragged.constant([a for a, _ in rows], tf.int32, ragged_rank=1)
    segments_b = tf.ragged.constant([b for _, b in rows], tf.int32, ragged_rank=1)
    packed = pack_in_graph(segments_a, segments_b if pairs else None, 12, VOCABULARY)
    # A second segment without ids counts as none.
    one_by_one = [pack_pair(a, (pairs and b) or None, 12, VOCABULARY) for a, b in rows]
    for name in ("input_ids", "input_mask", "segment_ids"):
        expected = np.stack([getattr(row, name) for row in one_by_one])
        np.testing.assert_array_equal(packed[name].numpy(), expected)
        assert packed[name].dtype == tf.int32


def test_the_length_is_known_in_a_graph():
    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.int32, 1)])
    def pack(segments):
        packed = pack_in_graph(segments, None, 7, VOCABULARY)
        assert packed["input_ids"].shape[1] == 7
        return packed["input_ids"]

    assert pack(tf.ragged.constant([[5], [6, 7]])).shape == (2, 7)


ALPHABET = alphabet_vocabulary()
SMALL = Vocabulary([*SPECIAL_TOKENS, "the", "word", "##s", ".", "α", "##ς", "##σ", "é"])
HARD = [
    "The words.",
    "",
    "ΑΣ ΑΣ.Α ΣΣΣ'",
    "é" * 150 + " é",
    "é" * 201 + " [MASK] 각§",
    "a\0b\ufffd\u200d!",
    "各" * 3,
]


@pytest.fixture(scope="module")
def in_graph():
    layer = GraphTokenizer(TextSettings(ALPHABET))
    return tf.function(layer, input_signature=[tf.TensorSpec([None], tf.string)])


def test_hard_lines_in_a_graph(in_graph):
    assert in_graph(tf.constant(HARD)).to_list() == expected_ids(HARD, ALPHABET, True)


@settings(max_examples=100, deadline=None)
@given(st.lists(trouble_text(), min_size=1, max_size=4))
@example(["a\ud800b"])
def test_any_text_in_a_graph(in_graph, lines):
    # TensorFlow refuses a `str` with half of a surrogate pair.
    encoded = [as_text(line).encode() for line in lines]
    assert in_graph(tf.constant(encoded)).to_list() == expected_ids(lines, ALPHABET, True)


def test_in_a_tf_data_pipeline():
    layer = GraphTokenizer(TextSettings(SMALL))
    data = tf.data.Dataset.from_tensor_slices(["The words.", "ΑΣ the"]).batch(2).map(layer)
    assert [rows.to_list() for rows in data] == [[[5, 6, 7, 8], [9, 10, 5]]]


@pytest.mark.parametrize("special_tokens", ["split", "keep"])
def test_spans_are_those_of_the_tokenizer(special_tokens):
    layer = GraphTokenizer(TextSettings(ALPHABET), special_tokens=special_tokens, with_spans=True)
    ids, starts, ends = tf.function(layer)(tf.constant(HARD))
    block = Tokenizer(
        TextSettings(ALPHABET), special_tokens=special_tokens
    ).encode_lines_with_spans(HARD)
    assert ids.flat_values.numpy().tolist() == block.ids.tolist()
    assert starts.flat_values.numpy().tolist() == block.starts.tolist()
    assert ends.flat_values.numpy().tolist() == block.ends.tolist()


def test_a_layer_made_from_its_configuration_is_the_same():
    layer = GraphTokenizer(
        TextSettings(SMALL, do_lower_case=False, strip_accents=True), special_tokens="keep"
    )
    again = GraphTokenizer.from_config(layer.get_config())
    lines = tf.constant(["the é[MASK] The"])
    assert again(lines).to_list() == layer(lines).to_list() == [[5, 1, 4, 1]]


def test_as_a_part_of_a_keras_model():
    lines = keras.Input((), dtype="string")
    model = keras.Model(lines, GraphTokenizer(TextSettings(SMALL))(lines))
    assert model(tf.constant(["The words."])).to_list() == [[5, 6, 7, 8]]


LOAD = """
import sys
import tensorflow as tf
import tensorflow_text  # noqa: F401
loaded = tf.saved_model.load(sys.argv[1])
lines = tf.io.read_file(sys.argv[2])
ids = loaded.tokenize(tf.strings.split(lines, "\\t"))
print(ids.to_list())
"""


@pytest.mark.slow
def test_a_saved_model_in_a_fresh_process_gives_the_same_ids(tmp_path):
    module = tf.Module()
    layer = GraphTokenizer(TextSettings(ALPHABET))
    module.tokenize = tf.function(layer, input_signature=[tf.TensorSpec([None], tf.string)])
    tf.saved_model.save(module, str(tmp_path / "model"))
    (tmp_path / "lines").write_text("\t".join(HARD))
    words = ["-c", LOAD, tmp_path / "model", tmp_path / "lines"]
    result = programs.run(words, cwd=tmp_path, check=True)
    assert result.stdout.strip() == str(expected_ids(HARD, ALPHABET, True))
