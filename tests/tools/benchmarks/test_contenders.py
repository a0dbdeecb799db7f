"""Each contender that is installed makes a step or a batch of its task."""

import importlib.util

import keras
import numpy as np
import pytest

from tools.benchmarks.contenders import CONTENDERS
from tools.benchmarks.workload import Workload

WORKLOAD = Workload("tiny", batch_size=2, length=8, precision="float32", vocab_size=50)
PEERS = {"keras_hub": "keras_hub", "torch": "transformers"}
HERE = [
    (task, name)
    for task, makers in CONTENDERS.items()
    for name in makers
    if not name.endswith(("_jax", "_compiled"))  # another backend; a C++ compiler
]


@pytest.fixture(autouse=True)
def restored_policy():
    policy = keras.config.dtype_policy()
    yield
    keras.config.set_dtype_policy(policy)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("task", "name"), HERE)
def test_a_contender_computes_finite_numbers_each_time(task, name):
    if name in PEERS and importlib.util.find_spec(PEERS[name]) is None:
        pytest.skip(f"{name} is not installed; pip install 'keras_bert_impl[bench]'")
    step = CONTENDERS[task][name](WORKLOAD)
    for _ in range(2):
        assert np.isfinite(np.asarray(step())).all()


def test_both_tasks_have_the_same_peers():
    shared = {"ceiling", "ours_fast", "ours_plain", "ours_jax", "keras_hub", "torch"}
    assert all(shared <= set(makers) for makers in CONTENDERS.values())
