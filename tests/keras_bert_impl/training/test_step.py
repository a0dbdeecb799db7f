"""One mathematics: a batch gives the same step however it is cut over replicas and time."""

import gc
import json
import os
import weakref

import keras
import numpy as np
import pytest

from keras_bert_impl.training.strategy import make_devices
from tests.support.cut_batches import batch, config_of, training_step
from tests.support.pretraining_run import two_workers
from tests.support.programs import Program
from tests.support.toy_training import ToyObjective, toy_features

pytestmark = pytest.mark.slow

# The bound for float32, over four steps of rate 1e-3: sums in another order. It is Adam that makes
# it as large: where a gradient is all rounding (keys' biases), m / (sqrt(v) + eps) is, too.
WEIGHTS_WITHIN, METRICS_WITHIN = 1e-5, 2e-5
WHOLE = "30,1,no,0"
VECTORS = "12,1,no,0,vectors,99"
CACHED, KEPT = "12,3,no,0.2,vectors,12", "12,1,no,0.2,vectors,12"


def started(strategy, ways, environment=None):
    return Program(["tests.support.cut_batches", strategy, *ways], os.environ | (environment or {}))


def results_of(process):
    out, error = process.communicate()
    assert process.returncode == 0, error[-3000:]
    return json.loads(out) if out else {}


@pytest.fixture(scope="module")
def one():
    return results_of(started("one_device", [WHOLE, "15,1,no,0.5,toy", VECTORS, CACHED, KEPT]))


@pytest.fixture(scope="module")
def two():
    ways = ["30,4,xla,0", "30,1,no,0.5,toy", "12,2,no,0,vectors,6"]
    return results_of(started("mirrored", ways))


def assert_same(one, other):
    for ours, theirs in zip(one["metrics"], other["metrics"], strict=True):
        assert ours == pytest.approx(theirs, rel=METRICS_WITHIN, abs=1e-6)
    np.testing.assert_allclose(one["weights"], other["weights"], rtol=0, atol=WEIGHTS_WITHIN)


def distance(one, other):
    return float(np.abs(np.subtract(one["weights"], other["weights"])).max())


def test_replicas_ragged_micro_batches_and_xla_give_the_step_of_one_device(one, two):
    assert_same(two["30,4,xla,0"], one[WHOLE])


def test_two_workers_give_the_same_step(one):
    """That of vectors, which workers tell each other; the site's page on workers trains a BERT."""
    processes = [started("multi_worker_mirrored", [VECTORS], env) for env in two_workers()]
    chief, _ = [results_of(process) for process in processes]
    assert_same(chief[VECTORS], one[VECTORS])


def test_texts_are_negatives_of_those_on_other_replicas_and_in_other_parts(one, two):
    assert_same(two["12,2,no,0,vectors,6"], one[VECTORS])


def test_texts_that_are_embedded_twice_have_the_same_dropout(one):
    assert_same(one[CACHED], one[KEPT])
    assert distance(one[CACHED], one[VECTORS]) > 1e-3


def test_dropout_differs_per_replica(one, two):
    """Both replicas get the same rows: with the same draws they would be one device with these."""
    assert distance(two["30,1,no,0.5,toy"], one["15,1,no,0.5,toy"]) > 1e-4


def test_weights_and_moments_are_let_go_with_the_step_that_trained_them():
    """TensorFlow keeps custom gradients for ever: of kernels, recomputation, sums over replicas."""
    config = config_of(train_batch_size=12, kernels="fast")
    state, step = training_step(make_devices(config), config)
    state.model.encoder.recompute = True
    step.run(*step.prepare([batch(12, 1)], 0, [1e-4]))
    trained = [*state.model.weights, *step._optimizer.variables]
    memory = [weakref.ref(variable.value.handle) for variable in trained]
    del state, step, trained
    gc.collect()
    assert len(memory) > 50
    assert sum(held() is not None for held in memory) == 0


def summing_model(_):
    """A classifier of the sum of any number of values."""
    inputs = keras.Input([None], name="x")
    logits = keras.layers.Dense(3)(keras.ops.sum(inputs, axis=-1, keepdims=True))
    return keras.Model({"x": inputs}, {"logits": logits})


def test_batches_of_several_lengths_take_one_trace_and_the_steps_of_one_each():
    features, weights, traced = toy_features(6), [], []
    for open_features in (frozenset(), frozenset({"x"})):
        how = (summing_model, ToyObjective(), open_features)
        state, step = training_step(make_devices(config_of()), config_of(), 0.0, *how)
        for number, length in enumerate((8, 5, 3, 8)):
            given = features | {"x": features["x"][:, :length]}
            step.run(*step.prepare([given], number, [1e-3]))
        weights.append(state.model.get_weights()[0])
        traced.append(step._one.experimental_get_tracing_count())
    assert traced == [3, 1]
    np.testing.assert_allclose(*weights, rtol=1e-6)
