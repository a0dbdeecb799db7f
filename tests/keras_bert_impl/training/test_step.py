"""One mathematics: a batch gives the same step however it is cut over replicas and time."""

import gc
import json
import os
import weakref

import numpy as np
import pytest

from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.strategy import make_devices
from tests.support import compiling
from tests.support.head_steps import HEADS, batch_for, training_step
from tests.support.pretraining_run import two_workers
from tests.support.programs import Program

pytestmark = pytest.mark.slow

# The bound for float32, over four steps of rate 1e-3: sums in another order. It is Adam that makes
# it as large: where a gradient is all rounding (keys' biases), m / (sqrt(v) + eps) is, too.
WEIGHTS_WITHIN, METRICS_WITHIN = 1e-5, 2e-5


def started(strategy, ways, environment=None):
    return Program(
        ["tests.support.cut_batches", strategy, *ways],
        {**os.environ, "XLA_FLAGS": compiling.QUICKLY, **(environment or {})},
    )


def results_of(process):
    out, error = process.communicate()
    assert process.returncode == 0, error[-3000:]
    return json.loads(out) if out else {}


@pytest.fixture(scope="module")
def one():
    ways = [
        "32,1,no,0,float32",
        "32,4,no,0,float32",
        "32,5,no,0,float32",
        "30,1,no,0,float32",
        "32,1,xla,0,float32",
        "16,1,no,0,float32",
        "16,1,no,0.2,float32",
        "32,1,no,0,bfloat16",
        "32,1,no,0,float16",
    ]
    return results_of(started("one_device", ways))


@pytest.fixture(scope="module")
def two():
    ways = [
        "32,1,no,0,float32",
        "32,2,no,0,float32",
        "30,4,no,0,float32",
        "32,1,xla,0,float32",
        "32,1,no,0,float32,twice",
        "32,1,no,0.2,float32,twice",
    ]
    return results_of(started("mirrored", ways))


def assert_same(one, other):
    for ours, theirs in zip(one["metrics"], other["metrics"], strict=True):
        assert ours == pytest.approx(theirs, rel=METRICS_WITHIN, abs=1e-6)
    np.testing.assert_allclose(one["weights"], other["weights"], rtol=0, atol=WEIGHTS_WITHIN)


def distance(one, other):
    return float(np.abs(np.subtract(one["weights"], other["weights"])).max())


@pytest.mark.parametrize("way", ["32,4,no,0,float32", "32,5,no,0,float32", "32,1,xla,0,float32"])
def test_micro_batches_even_ragged_ones_and_xla_give_the_big_batchs_step(one, way):
    assert_same(one[way], one["32,1,no,0,float32"])


@pytest.mark.parametrize("way", ["32,1,no,0,float32", "32,2,no,0,float32", "32,1,xla,0,float32"])
def test_two_replicas_with_and_without_micro_batches_give_the_same_step(one, two, way):
    assert_same(two[way], one["32,1,no,0,float32"])


def test_a_batch_that_does_not_divide_gives_the_same_step(one, two):
    assert_same(two["30,4,no,0,float32"], one["30,1,no,0,float32"])


def test_two_workers_give_the_same_step(one):
    way = "32,1,no,0,float32"
    processes = [started("multi_worker_mirrored", [way], env) for env in two_workers()]
    chief, _ = [results_of(process) for process in processes]
    assert_same(chief[way], one[way])


def test_dropout_differs_per_replica(one, two):
    """Both replicas get the same rows: with the same draws they would be one device with these."""
    assert_same(two["32,1,no,0,float32,twice"], one["16,1,no,0,float32"])
    assert distance(two["32,1,no,0.2,float32,twice"], one["16,1,no,0.2,float32"]) > 1e-4


def test_bfloat16_stays_near_float32(one):
    losses = [
        [m["loss"] for m in one[f"32,1,no,0,{p}"]["metrics"]] for p in ("float32", "bfloat16")
    ]
    np.testing.assert_allclose(losses[1], losses[0], rtol=2e-2)


def test_float16_scales_its_loss_and_stays_near_float32(one):
    plain, scaled = one["32,1,no,0,float32"], one["32,1,no,0,float16"]
    assert [m["loss_scale"] for m in scaled["metrics"]] == [32768.0] * 4
    losses = [[m["loss"] for m in run["metrics"]] for run in (plain, scaled)]
    np.testing.assert_allclose(losses[1], losses[0], rtol=2e-2)


def test_weights_and_moments_are_let_go_with_the_step_that_trained_them():
    """TensorFlow keeps custom gradients for ever: of kernels, recomputation, sums over replicas."""
    config = TrainingConfig(
        learning_rate=1e-4,
        num_train_steps=1,
        num_warmup_steps=0,
        train_batch_size=12,
        kernels="fast",
    )
    model, step = training_step(*HEADS["choices"], make_devices(config), config)
    model.encoder.recompute = True
    step.run(*step.prepare([batch_for("choices", 1)], 0, [1e-4]))
    trained = [*model.weights, *step._optimizer.variables]
    memory = [weakref.ref(variable.value.handle) for variable in trained]
    del model, step, trained
    gc.collect()
    assert len(memory) > 50
    assert sum(held() is not None for held in memory) == 0
