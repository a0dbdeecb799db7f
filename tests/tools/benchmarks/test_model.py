"""The model benchmark, whole but tiny: its workload, its contenders, and what it prints."""

import importlib.util
import json

import keras
import numpy as np
import pytest

from keras_bert_impl.models.pretrainer import BertPretrainer
from tools.benchmarks import model
from tools.benchmarks.measuring import LeftOutError
from tools.benchmarks.model import CONTENDERS, Workload

TINY = ["--size=tiny", "--batch_size=2", "--max_seq_length=8", "--steps=1", "--rounds=1"]
PEERS = {"keras_hub": "keras_hub", "torch": "transformers"}
HERE = [
    (task, name)
    for task, makers in CONTENDERS.items()
    for name in makers
    if not name.endswith("_compiled")  # needs a C++ compiler
]


def tiny(**more):
    return Workload(size="tiny", batch_size=2, max_seq_length=8, vocab_size=50, **more)


@pytest.fixture
def restored_policy():
    policy = keras.config.dtype_policy()
    yield
    keras.config.set_dtype_policy(policy)


def test_every_sequence_is_full_and_its_masked_positions_are_in_it():
    features = Workload(size="tiny", batch_size=3, max_seq_length=16).features()
    assert features["input_ids"].shape == (3, 16)
    assert features["input_mask"].all()
    assert features["masked_lm_positions"].shape == (3, 2)
    assert features["masked_lm_positions"].max() < 16


def test_the_features_are_what_the_pretrainer_takes():
    pretrainer = BertPretrainer(tiny().config)
    features = tiny().features()
    outputs = pretrainer({name: features[name] for name in pretrainer.input})
    assert all(np.isfinite(np.asarray(output)).all() for output in outputs.values())


def test_a_step_counts_its_products_by_hand():
    layer = 2 * 8 * (4 * 128 * 128 + 2 * 128 * 512) + 2 * 2 * 8 * 8 * 128  # tiny has 2 of 128
    heads = 2 * (128 * 128 + 128 * 50) + 2 * 128 * 128 + 2 * 2 * 128
    assert tiny().predictions == 1
    assert tiny().flops(training=False) == 2 * 2 * layer
    assert tiny().flops(training=True) == 2 * 3 * (2 * layer + heads)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.usefixtures("restored_policy")
@pytest.mark.parametrize(("task", "name"), HERE)
def test_a_contender_computes_finite_numbers_each_time(task, name):
    if name in PEERS and importlib.util.find_spec(PEERS[name]) is None:
        pytest.skip(f"{name} is not installed; pip install '.[bench]'")
    step = CONTENDERS[task][name](tiny(precision="float32"))
    for _ in range(2):
        assert np.isfinite(np.asarray(step())).all()


def test_both_tasks_have_the_same_peers():
    shared = {"ours_fast", "ours_plain", "keras_hub", "torch"}
    assert all(shared <= set(makers) for makers in CONTENDERS.values())


def printed_lines(capsys):
    return [json.loads(row) for row in capsys.readouterr().out.splitlines() if row.startswith("{")]


@pytest.fixture
def few_children(monkeypatch, restored_policy):
    """Measures in this process all but one contender; a new one takes seconds."""
    in_child = model._measure_in_child

    def measure(task, contender, workload):
        of_its_own = (task, contender) == ("train", "ours_fast")
        return (in_child if of_its_own else model.measure)(task, contender, workload)

    monkeypatch.setattr(model, "_measure_in_child", measure)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.usefixtures("few_children")
@pytest.mark.parametrize(
    ("task", "contenders"),
    [("train", ["ours_fast", "ours_recompute"]), ("inference", ["ours_fast"])],
)
def test_every_contender_of_ours_takes_part(capsys, task, contenders):
    assert model.main([*TINY, f"--task={task}", f"--contenders={','.join(contenders)}"]) == 0
    lines = printed_lines(capsys)
    assert [line["contender"] for line in lines] == contenders
    for line in lines:
        assert line["task"] == task
        assert len(line["seconds"]) == 1
        assert line["seconds"][0] > 0
        assert line["peak_bytes"][0] > 1e6


def test_a_contender_that_fails_is_left_out_and_said(capsys, monkeypatch):
    def measure(task, contender, workload):
        if contender == "torch":
            raise LeftOutError("No module named 'torch'")
        return {"seconds": [0.5, 1.5], "processor_seconds": [1, 1], "peak_bytes": [2e9]}

    monkeypatch.setattr(model, "_measure_in_child", measure)
    assert model.main([*TINY, "--contenders=ours_plain,torch", "--rounds=2"]) == 0
    printed = capsys.readouterr()
    assert printed.err.count("torch is left out: No module named 'torch'") == 1
    lines = [json.loads(row) for row in printed.out.splitlines() if row.startswith("{")]
    assert [line["contender"] for line in lines] == ["ours_plain"]
    assert lines[0]["seconds"] == [0.5, 1.5] * 2
