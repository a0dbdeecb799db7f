"""LAMB beside the formula in float64 NumPy."""

import numpy as np
import pytest

from keras_bert_impl.optimizers.bert_adamw import Lamb
from tests.support.adamw_formula import DECAY, RATE, keras_steps, numpy_steps


@pytest.fixture
def start():
    draws = np.random.default_rng(0)
    weight = draws.normal(size=[3, 4]).astype("float32")
    return weight, [draws.normal(size=[3, 4]).astype("float32") for _ in range(5)]


@pytest.mark.parametrize(("name", "decay"), [("kernel", DECAY), ("bias", 0.0)])
def test_lamb_scales_by_the_weights_size_except_where_nothing_decays(start, name, decay):
    optimizer = Lamb(RATE, weight_decay=DECAY, bias_correction=True)
    expected = numpy_steps(*start, decay, bias_correction=True, trust=name == "kernel")
    np.testing.assert_allclose(keras_steps(optimizer, name, *start), expected, rtol=1e-4)


def test_lamb_moves_a_weight_of_zeros():
    moved = keras_steps(Lamb(RATE), "kernel", np.zeros(2, "float32"), [np.ones(2, "float32")])
    assert np.isfinite(moved).all()
    assert (moved != 0).all()
