"""Composed text: all tokenizers cut it alike, and say where tokens stand in the text as it is."""

import functools
import re
import unicodedata

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.tokenization.kernels import composed_characters
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from keras_bert_impl.tokenization.preprocessor import GraphTokenizer
from keras_bert_impl.tokenization.reference import composed, composed_places, joining_characters
from keras_bert_impl.tokenization.text_settings import NFC, TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

JOINING = "".join(
    one for one in map(chr, range(0x300, 0x20000)) if re.match(f"[{joining_characters()}]", one)
)
LETTERS = [*"aeoΣ가각한국어がか東.", *JOINING[:60]]
COMPOSED = {composed(a + b) for a in "aeo" for b in JOINING[:40]}
WORDS = sorted({*LETTERS, *(one for one in COMPOSED if len(one) == 1)})
VOCABULARY = Vocabulary([*SPECIAL_TOKENS, *WORDS, *(f"##{one}" for one in WORDS)])
WAYS = [((False, None), "split"), ((True, None), "keep"), ((True, False), "split")]
"""Each with a graph of its own: casing, and what becomes of special tokens."""

pieces = st.sampled_from([*LETTERS, " ", "\n", "\0", "[MASK]", "\u1100", "é", "\u200b"])
marks = st.text(st.sampled_from(JOINING), max_size=3)
texts = st.lists(st.tuples(pieces, marks), max_size=8).map(
    lambda pairs: "".join(one + mark for one, mark in pairs)
)
lines = st.lists(texts | texts.map(lambda one: unicodedata.normalize("NFD", one)), max_size=3)


@functools.cache
def tokenizers(casing, special_tokens):
    text = TextSettings(VOCABULARY, *casing, NFC)
    layer = GraphTokenizer(text, special_tokens, with_spans=True)
    graph = tf.function(layer, input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    of_composed = Tokenizer(TextSettings(VOCABULARY, *casing), special_tokens)
    return PlainTokenizer(text, special_tokens), Tokenizer(text, special_tokens), graph, of_composed


@pytest.mark.filterwarnings("ignore:do_lower_case is on")
@settings(max_examples=40, deadline=None)
@given(lines, st.sampled_from(WAYS))
def test_ids_are_those_of_the_composed_text_and_spans_those_of_the_text(lines, way):
    casing, special = way
    plain, kernels, graph, of_composed = tokenizers(casing, special)
    expected = of_composed.encode_lines([composed(line) for line in lines])
    for found in (plain.encode_lines(lines), kernels.encode_lines(lines)):
        assert found.ids.tolist() == expected.ids.tolist()
        assert found.offsets.tolist() == expected.offsets.tolist()
    ids, *spans = (
        ragged.flat_values.numpy().tolist() for ragged in graph(tf.constant(lines, "string"))
    )
    in_bytes = kernels.encode_lines_with_spans(lines, "bytes")
    assert ids == in_bytes.ids.tolist() == expected.ids.tolist()
    assert spans == [in_bytes.starts.tolist(), in_bytes.ends.tolist()]
    if special == "split":
        one, other = (x.encode_lines_with_spans(lines, "characters") for x in (plain, kernels))
        assert one.starts.tolist() == other.starts.tolist()
        assert one.ends.tolist() == other.ends.tolist()


@given(texts)
def test_units_put_together_are_the_composed_text(text):
    found = list(composed_places(text))
    assert "".join(character for character, _ in found) == composed(text)
    places = [place for _, place in found]
    assert places == sorted(places)


def test_composing_is_python_s_in_the_kernels_too():
    every = [chr(n) for n in range(0x110000) if not 0xD800 <= n < 0xE000]
    assigned = [one for one in every if unicodedata.category(one) != "Cn"]
    pairs = zip(JOINING, JOINING[::-1], strict=True)
    for some in (assigned, [f"e{one}{other}" for one, other in pairs]):
        found = composed_characters(tf.constant(some)).numpy()
        assert [one.decode() for one in found] == [composed(one) for one in some]
