"""What TensorFlow does in graphs and NumPy in eager mode, held to lists; one list of cases."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.tokenization.cutting import LineCutter, replace_rows, splice_rows
from keras_bert_impl.tokenization.kernel_models import load_kernel_models
from keras_bert_impl.tokenization.kernels import CutTokens
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.tokenization import alphabet_vocabulary, expected_ids, trouble_text


def in_numpy(rows):
    flat = np.array([x for row in rows for x in row], np.int64)
    return CutTokens(flat, np.cumsum([0, *map(len, rows)]), flat + 100, flat + 200)


def in_tensors(rows):
    return CutTokens(*(tf.constant(x, tf.int64) for x in in_numpy(rows)))


def as_lists(tokens):
    splits = np.asarray(tokens.row_splits)
    return [np.asarray(tokens.ids)[a:b].tolist() for a, b in itertools.pairwise(splits)]


def spliced(rows, changes):
    numbers = np.array(sorted(changes))
    others = in_numpy([changes[number] for number in numbers])
    return splice_rows(in_numpy(rows), numbers, others)


def replaced(rows, changes):
    numbers = tf.constant(sorted(changes), tf.int64)
    others = in_tensors([changes[int(number)] for number in numbers])
    return replace_rows(in_tensors(rows), numbers, others)


ROWS = st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=6)


@given(ROWS, st.data())
def test_both_ways_exchange_the_same_rows(rows, data):
    numbers = st.integers(0, len(rows) - 1)
    changes = data.draw(
        st.dictionaries(numbers, st.lists(st.integers(10, 19), max_size=4), min_size=1)
    )
    expected = [changes.get(number, row) for number, row in enumerate(rows)]
    assert as_lists(spliced(rows, changes)) == as_lists(replaced(rows, changes)) == expected


VOCABULARY = alphabet_vocabulary()
SETTINGS = TextSettings(VOCABULARY, strip_accents=True)
MODELS = load_kernel_models(SETTINGS)
CUTTER = LineCutter(MODELS, SETTINGS, keeps_special_tokens=False)


def now(lines):
    return CUTTER.cut(tf.constant(lines, tf.string), *constants(), with_spans=False)


@tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
def traced(lines):
    return CUTTER.cut(lines, *constants(), with_spans=False)


def in_graph(lines):
    return traced(tf.constant(lines, tf.string))


def constants():
    return tf.constant(MODELS.normalizer), tf.constant(MODELS.wordpiece)


RARE = [
    ["plain words"],
    ["", "", ""],
    ["\u0391\u03a3 \u0391\u03a3\u0391"],
    ["a" * 200, "a" * 201, "\u00e9" * 150, "b" * 900],
    ["a \u03a3", "x" * 300, "\u03a3" * 300, "plain"],
]


@pytest.mark.parametrize("cut", [now, in_graph])
@pytest.mark.parametrize("lines", RARE)
def test_sigmas_and_long_words_are_cut_as_the_reference_does(cut, lines):
    found = cut(lines)
    assert as_lists(found) == [expected_ids([line], VOCABULARY, True, True)[0] for line in lines]


@given(st.lists(trouble_text(12), min_size=1, max_size=4))
def test_eager_mode_and_a_graph_cut_alike(lines):
    clean = [line.encode("utf-8", "ignore") for line in lines]
    assert as_lists(now(clean)) == as_lists(in_graph(clean))
