"""The model benchmark, whole but tiny: what it prints is read again."""

import importlib.util
import json

import keras
import pytest

from tools.benchmarks import model

TINY = ["--size=tiny", "--batch_size=2", "--max_seq_length=8", "--steps=1", "--rounds=1"]
JAX = [] if importlib.util.find_spec("jax") is None else ["ours_jax"]


def printed_lines(capsys):
    return [json.loads(row) for row in capsys.readouterr().out.splitlines() if row.startswith("{")]


@pytest.fixture
def few_children(monkeypatch):
    """Measures in this process all but one contender and those on JAX; a new one takes seconds."""
    in_child, policy = model._measure_in_child, keras.config.dtype_policy()

    def measure(task, contender, workload):
        of_its_own = contender in JAX or (task, contender) == ("train", "ours_fast")
        return (in_child if of_its_own else model.measure)(task, contender, workload)

    monkeypatch.setattr(model, "_measure_in_child", measure)
    yield
    keras.config.set_dtype_policy(policy)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.usefixtures("few_children")
@pytest.mark.parametrize(
    ("task", "contenders"),
    [("train", ["ours_fast", "ours_recompute", *JAX]), ("inference", ["ours_fast", *JAX])],
)
def test_every_contender_of_ours_takes_part(capsys, task, contenders):
    assert model.main([*TINY, f"--task={task}", f"--contenders={','.join(contenders)}"]) == 0
    lines = printed_lines(capsys)
    assert [line["contender"] for line in lines] == ["ceiling", *contenders]
    for line in lines:
        assert line["task"] == task
        assert len(line["seconds"]) == 1
        assert line["seconds"][0] > 0
        assert line["peak_bytes"][0] > 1e6


def test_a_contender_that_fails_is_left_out_and_said(capsys, monkeypatch):
    def measure(task, contender, workload):
        if contender == "torch":
            return {}
        return {"seconds": [0.5, 1.5], "processor_seconds": [1, 1], "peak_bytes": [2e9]}

    monkeypatch.setattr(model, "_measure_in_child", measure)
    assert model.main([*TINY, "--contenders=ours_plain,torch", "--rounds=2"]) == 0
    lines = printed_lines(capsys)
    assert [line["contender"] for line in lines] == ["ceiling", "ours_plain"]
    assert lines[1]["seconds"] == [0.5, 1.5] * 2
