"""Forms that other engines know, held to the plain ones."""

import numpy as np
import pytest

from keras_bert_impl.engines.portable_kernels import PortableKernels
from keras_bert_impl.layers import kernels
from tests.support.tiny_bert import TINY, features


@pytest.mark.parametrize("activation", ["gelu_erf", "gelu_tanh", "relu"])
def test_they_compute_what_the_plain_ones_compute(model, activation):
    if activation != TINY.hidden_act:
        model = type(model)(TINY.replace(hidden_act=activation))
    batch = features()
    expected = model(batch)
    with kernels.use(PortableKernels()):
        found = model(batch)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=2e-6, err_msg=name)
