"""Whole sets by an engine."""

import numpy as np

from keras_bert_impl.engines.open_engine import EnginePrediction
from keras_bert_impl.training.evaluation import Prediction
from tests.support.tiny_bert import features

NAMES = ("input_ids", "input_mask", "segment_ids", "masked_lm_positions")


class Backwards:
    """An engine whose last batch is ready first."""

    tokens_at_once, batches_at_once, few_lengths = 1024, 1, False

    def __init__(self, model):
        self._model, self.shapes = model, []

    def compute(self, batches):
        for key, batch in reversed(list(batches)):
            self.shapes.append(batch["input_ids"].shape)
            yield key, {name: np.array(value) for name, value in self._model(batch).items()}

    def identity(self):
        return None


class Source:
    """Two batches; the second has a row that fills it up and two positions of padding."""

    def batches(self):
        padded = features(batch=3, length=8, seed=2)
        padded["input_mask"][:, 6:] = 0
        padded["masked_lm_positions"] %= 6
        yield features(batch=3, length=8, seed=1)
        yield {**padded, "example_weights": np.array([1, 1, 0], np.float32)}


def test_real_rows_get_the_models_outputs_in_order_without_their_padding(model):
    engine = Backwards(model)
    found = list(EnginePrediction(engine, NAMES)(Source()))
    assert engine.shapes == [(2, 6), (3, 8)]
    for outputs, expected in zip(found, Prediction(model, NAMES)(Source()), strict=True):
        for name, value in expected.items():
            np.testing.assert_allclose(outputs[name], value, atol=1e-5, err_msg=name)
