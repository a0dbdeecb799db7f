import dataclasses

import pytest

from pipelines.pretraining_data.recipe import PretrainingDataConfig
from pipelines.runners import local
from pipelines.runners.create import create_pretraining_data

CONFIG = PretrainingDataConfig("text.txt", "out/x", "vocab.txt")


@pytest.mark.parametrize("runner", ["local", "DirectRunner", "FlinkRunner"])
def test_the_runner_s_name_chooses_what_makes_the_shards(monkeypatch, runner):
    from pipelines.runners import beam

    monkeypatch.setattr(local, "run_local", lambda config: ("local", config))
    monkeypatch.setattr(beam, "run_beam", lambda config: ("beam", config))
    config = dataclasses.replace(CONFIG, runner=runner)
    assert create_pretraining_data(config) == ("local" if runner == "local" else "beam", config)
