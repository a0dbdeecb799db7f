"""The model benchmark, whole but tiny: its workload, its contenders, and what it prints."""

import json
import math

import keras
import pytest

from tools.benchmarks import model
from tools.benchmarks.measuring import LeftOutError
from tools.benchmarks.model import Workload

TINY = ["--size=tiny", "--batch_size=2", "--max_seq_length=8", "--steps=1", "--rounds=1"]


def tiny(**more):
    return Workload(size="tiny", batch_size=2, max_seq_length=8, vocab_size=50, **more)


@pytest.fixture
def restored_policy():
    policy = keras.config.dtype_policy()
    yield
    keras.config.set_dtype_policy(policy)


def test_a_step_counts_its_products_by_hand():
    layer = 2 * 8 * (4 * 128 * 128 + 2 * 128 * 512) + 2 * 2 * 8 * 8 * 128  # tiny has 2 of 128
    heads = 2 * (128 * 128 + 128 * 50) + 2 * 128 * 128 + 2 * 2 * 128
    assert tiny().predictions == 1
    assert tiny(task="inference").flops() == 2 * 2 * layer
    assert tiny(task="train").flops() == 2 * 3 * (2 * layer + heads)


@pytest.mark.parametrize("task", ["train", "inference"])
def test_the_products_alone_are_as_many_as_those_of_a_step(task):
    workload = tiny(task=task)
    of_a_pass = sum(2 * math.prod(left) * right[-1] for left, right in model.products_of(workload))
    assert of_a_pass * (3 if task == "train" else 1) == workload.flops()
    assert model.measure(workload, "products")["s/step"] > 0


def printed_lines(capsys):
    return [json.loads(row) for row in capsys.readouterr().out.splitlines() if row.startswith("{")]


@pytest.mark.slow
@pytest.mark.usefixtures("restored_policy")
def test_a_contender_of_ours_is_measured(capsys, monkeypatch):
    def in_child(module, case, *flags):
        model.FLAGS.parse(flags)
        return model.measure(model.FLAGS.config(), **case)

    monkeypatch.setattr(model, "in_child", in_child)
    words = ["--task=inference", "--contenders=ours_plain", "--precision=float32"]
    assert model.main([*TINY, *words]) == 0
    (line,) = printed_lines(capsys)
    assert (line["task"], line["who"]) == ("inference", "ours_plain")
    assert len(line["s/step"]) == 1
    assert line["s/step"][0] > 0
    assert line["peak GB"][0] > 1e-3


def test_a_contender_that_fails_is_left_out_and_said(capsys, monkeypatch):
    def in_child(module, case, *flags):
        if case["contender"] == "torch":
            raise LeftOutError("No module named 'torch'")
        return {"s/step": 0.5, "peak GB": 2.0}

    monkeypatch.setattr(model, "in_child", in_child)
    assert model.main([*TINY, "--contenders=ours_plain,torch", "--rounds=2"]) == 0
    printed = capsys.readouterr()
    assert printed.err.count("torch is left out: No module named 'torch'") == 1
    lines = [json.loads(row) for row in printed.out.splitlines() if row.startswith("{")]
    assert [line["who"] for line in lines] == ["ours_plain"]
    assert lines[0]["s/step"] == [0.5] * 2
