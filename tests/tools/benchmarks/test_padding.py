import json
from pathlib import Path

import pytest

from tests.support.glue_files import write_cola
from tests.support.model_folders import write_classifier, write_encoder
from tests.support.squad_files import write_squad
from tools.benchmarks import padding


def test_ways_are_measured_in_turns():
    taken = []
    ways = {"pad": lambda count: taken.append(("pad", count)), "cut": lambda _: taken.append("cut")}
    rates = padding.measure(ways, num_steps=5, rounds=2, batch_size=4)
    assert taken == [("pad", 5), "cut"] * 2
    assert {name: len(measured) for name, measured in rates.items()} == {"pad": 2, "cut": 2}


@pytest.mark.long
@pytest.mark.slow
def test_the_ways_differ_in_their_padding_only(tmp_path, capsys):
    arguments = [
        f"--data_dir={write_cola(tmp_path / 'cola')}",
        f"--init_checkpoint={write_classifier(tmp_path / 'model', ['no', 'yes'])}",
        "--max_seq_length=12", "--train_batch_size=4", "--num_steps=3", "--rounds=1",
        "--ways=pad,cut,sorted",
    ]  # fmt: skip
    assert padding.main(arguments) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert set(told["examples_per_second"]) == {"pad", "cut", "sorted"}
    assert told["padding"]["sorted"] <= told["padding"]["cut"] <= told["padding"]["pad"]
    assert told["to_pad"]["pad"] == 1.0


@pytest.mark.long
@pytest.mark.slow
def test_questions_are_trained_and_answered(tmp_path, capsys):
    arguments = [
        f"--train_file={write_squad(tmp_path / 'train.json')}",
        f"--init_checkpoint={write_encoder(tmp_path / 'model', max_position_embeddings=72)}",
        "--max_seq_length=72", "--train_batch_size=4", "--num_steps=3", "--rounds=1",
        "--ways=pad,sorted,answer_pad,answer_sorted",
    ]  # fmt: skip
    assert padding.main(arguments) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["task"] == "squad"
    assert told["padding"]["sorted"] < told["padding"]["pad"]
    assert told["padding"]["answer_sorted"] < told["padding"]["answer_pad"]
    assert told["to_pad"]["answer_pad"] == told["to_pad"]["pad"] == 1.0


@pytest.mark.parametrize("flags", [[], ["--data_dir=CoLA", "--train_file=train.json"]])
def test_either_texts_or_questions_are_measured(capsys, flags):
    assert padding.main([*flags, "--init_checkpoint=model"]) == 1
    assert "give --data_dir, a folder of GLUE, or --train_file" in capsys.readouterr().err


def test_peers_that_are_not_installed_are_named(monkeypatch):
    monkeypatch.setattr(padding, "missing", lambda *names: list(names))
    config = padding.PaddingConfig(data_dir=Path("CoLA"), init_checkpoint="model")
    assert padding._why_no_trainer(config) == "torch and transformers not installed."
