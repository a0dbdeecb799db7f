import json

import numpy as np
import pytest

from pipelines.inputs.pretraining import PretrainingBatches
from tools.benchmarks import training

CASE = {"model_size": "tiny", "batch": 4, "length": 32, "vocab_size": 100}


def test_the_made_up_files_are_what_a_run_reads(tmp_path):
    training.write_shard(tmp_path, CASE)
    batch = PretrainingBatches([str(tmp_path / "made_up.tfrecord")], 4, 32, 20, seed=1).batch_at(0)
    assert np.asarray(batch["input_ids"]).shape == (4, 32)
    assert json.loads((tmp_path / "bert_config.json").read_text())["vocab_size"] == 100
    assert len((tmp_path / "vocab.txt").read_text().split()) == 100


@pytest.mark.long
@pytest.mark.slow
def test_the_trainer_is_compared_with_its_bare_step(capsys):
    arguments = [
        "--model_size=tiny", "--train_batch_size=2", "--max_seq_length=32", "--vocab_size=100",
        "--num_steps=5", "--rounds=1", "--ways=step,trainer",
    ]  # fmt: skip
    assert training.main(arguments) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert set(told["seconds"]) == {"step", "trainer"}
    assert told["trainer/step"] == pytest.approx(
        told["seconds"]["trainer"][0] / told["seconds"]["step"][0], abs=0.001
    )


@pytest.mark.long
@pytest.mark.slow
def test_a_measured_peak_stands_beside_its_estimate(capsys):
    arguments = ["--memory_cases=tiny,2,32,float32,lamb,micro=2", "--vocab_size=100"]
    assert training.main(arguments) == 0
    table, line = capsys.readouterr().out.splitlines()[1:]
    told = json.loads(line)
    assert told["case"] == "tiny,2,32,float32,lamb,micro=2"
    assert told["measured"] > 1e8  # TensorFlow alone takes more
    assert told["estimate"] >= sum(told["parts"].values())
    assert f"{told['measured'] / 1e9:.2f}" in table
