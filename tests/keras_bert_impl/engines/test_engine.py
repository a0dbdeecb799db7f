"""TensorFlow as an engine."""

import numpy as np
import pytest

from keras_bert_impl.engines.engine import KerasEngine
from tests.support.tiny_bert import features


def test_batches_come_with_their_keys_and_the_models_outputs(model):
    batches = [("a", features(seed=1)), ("b", features(batch=3, length=11, seed=2))]
    engine = KerasEngine(model)
    for (key, batch), (found, outputs) in zip(batches, engine.compute(batches), strict=True):
        assert found == key
        for name, value in model(batch).items():
            np.testing.assert_allclose(outputs[name], value, atol=1e-5, err_msg=name)
    assert engine.identity() is None


def test_a_closed_one_computes_nothing_more(model):
    engine = KerasEngine(model)
    assert set(engine.compute_one(features())) == set(model.output)
    engine.close()
    engine.close()
    with pytest.raises(RuntimeError, match="closed"):
        engine.compute_one(features())
