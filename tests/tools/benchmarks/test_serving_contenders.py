"""The contenders of the serving benchmark that need no peer."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.serving.embedder import Embedder
from tests.support.model_folders import write_encoder
from tools.benchmarks.serving_contenders import CONTENDERS, Setting, _batches, _mean

TEXTS = ["the dog runs .", "a", "the cat sleeps , a list"]


def test_every_precision_has_ours_and_peers():
    for precision in ("float32", "bfloat16", "int8"):
        some = {name: one for name, one in CONTENDERS.items() if one.precision == precision}
        assert {one.is_peer for one in some.values()} == {True, False}
        assert all(name.removesuffix("_alone").endswith(precision) for name in some)


@given(st.lists(st.integers(1, 300), min_size=1, max_size=60))
def test_every_row_is_in_one_batch(lengths):
    batches = list(_batches([[0] * length for length in lengths]))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    assert all(len(some) * lengths[some[0]] <= 1024 for some in batches)


def test_a_mean_is_of_real_tokens():
    hidden = np.array([[[1.0], [3.0], [9.0]], [[5.0], [9.0], [9.0]]])
    assert _mean(hidden, [2, 1]).tolist() == [[2.0], [5.0]]


@pytest.mark.parametrize("name", ["ours_tensorflow_float32_alone", "products_float32"])
def test_a_contender_gives_a_vector_a_text(tmp_path, name):
    folder = write_encoder(tmp_path / "model")
    setting = Setting(str(folder), threads=1, length=8, precision="float32")
    vectors = CONTENDERS[name].make(setting)(TEXTS)
    assert vectors.shape == (3, 16)
    if name.startswith("ours"):
        expected = Embedder.from_pretrained(folder, max_seq_length=8).embed(TEXTS)
        np.testing.assert_allclose(vectors, expected, atol=1e-6)
