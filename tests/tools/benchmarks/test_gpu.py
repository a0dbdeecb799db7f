import json

from tools.benchmarks import gpu, model
from tools.benchmarks.gpu import GpuConfig


def test_the_models_that_are_compared_drop_nothing():
    config = GpuConfig(size="tiny").config
    assert config.hidden_dropout_prob == config.attention_probs_dropout_prob == 0.0


def test_each_contender_is_measured_in_a_child_with_the_same_flags(capsys, monkeypatch):
    asked = {}

    def in_child(module, case, *flags):
        asked[case["contender"]] = (module, flags)
        return {"seq/s": 2.0}

    monkeypatch.setattr(model, "in_child", in_child)
    assert gpu.main(["--batch_size=3", "--contenders=ours,torch"]) == 0
    assert asked["ours"] == asked["torch"]
    assert {"--batch_size=3", "--task=train"} <= set(asked["ours"][1])
    rows = [json.loads(row) for row in capsys.readouterr().out.splitlines() if row[0] == "{"]
    assert [(row["who"], row["batch_size"]) for row in rows] == [("ours", 3), ("torch", 3)]
