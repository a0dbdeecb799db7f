"""Vectors in fewer bytes, beside sentence-transformers' numbers."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import keras_bert_impl as kb
from keras_bert_impl.serving.smaller_vectors import TYPES, quantized, ranges_of, restored, truncated

GOLDEN = np.load(Path(__file__).parents[2] / "golden" / "vectors" / "sentence_transformers.npz")


@pytest.mark.parametrize("kind", ["int8", "ubinary"])
@pytest.mark.parametrize("given_ranges", [False, True])
def test_bytes_are_sentence_transformers_own(kind, given_ranges):
    vectors = GOLDEN["vectors"]
    ranges = (
        GOLDEN["ranges"] if given_ranges else ranges_of([vectors[:7], vectors[7:], vectors[:0]])
    )
    found = quantized(vectors, kind, ranges)
    assert found.dtype == TYPES[kind]
    np.testing.assert_array_equal(found, GOLDEN[f"{kind}_of_ranges" if given_ranges else kind])


@given(st.integers(1, 30), st.integers(1, 20), st.integers(0, 99))
def test_what_is_restored_is_near(count, width, seed):
    vectors = np.random.default_rng(seed).standard_normal((count, width)).astype("float32")
    ranges = ranges_of([vectors])
    near = restored(quantized(vectors, "int8", ranges), width, ranges)
    assert near.dtype == np.float32
    assert (np.abs(near - vectors) <= 0.51 * (ranges[1] - ranges[0]) / 255 + 1e-6).all()
    bits = quantized(vectors, "ubinary")
    np.testing.assert_array_equal(restored(bits, width), np.where(vectors > 0, 1, -1))
    np.testing.assert_array_equal(restored(vectors, width), vectors)


@pytest.mark.parametrize("normalize", [False, True])
def test_truncated_vectors_keep_their_direction(normalize):
    vectors = GOLDEN["vectors"]
    found = truncated(vectors, 5, normalize)
    lengths = np.linalg.norm(vectors[:, :5], axis=1, keepdims=True) if normalize else 1
    np.testing.assert_allclose(found, vectors[:, :5] / lengths, rtol=1e-6)
    assert truncated(vectors, None, normalize) is vectors
    assert truncated(vectors, 13, normalize) is vectors


@pytest.mark.parametrize("size", [0, -1, 14, 5.0, True])
def test_a_size_that_vectors_have_not_is_refused(size):
    with pytest.raises(kb.UserError, match=f"`dimensions={size}`.*give 1 to 13"):
        truncated(GOLDEN["vectors"], size, normalize=True)
