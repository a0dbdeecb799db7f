"""A tiny model is adapted to a made language, whole, with the real tools."""

import json

import pytest

from tests.support.adaptation import write_language, write_model
from tools import adapt

FLAGS = (
    "--init_checkpoint=model",
    "--input_file=text.txt",
    "--output_dir=adapted",
    "--num_new_tokens=40",
    "--max_seq_length=32",
    "--max_predictions_per_seq=5",
    "--num_train_steps=120",
    "--learning_rate=3e-3",
    "--num_workers=1",
    "--pretraining_flags=--kernels=plain --save_checkpoints_steps=40",
)


def inputs(folder):
    folder.mkdir()
    changes = {"hidden_size": 48, "intermediate_size": 96, "num_attention_heads": 4}
    write_model(folder / "model", heads=False, num_hidden_layers=1, **changes)
    write_language(folder / "text.txt", 200)
    return folder


def check_that_it_learned(values):
    """Masked words and tokens a word get better."""
    original, adapted, guess = (values[name] for name in ("original", "adapted", "guessing"))
    assert adapted["tokens_per_word"] < original["tokens_per_word"] / 3
    assert adapted["masked_lm_accuracy"] > 2 * guess["masked_lm_accuracy"]
    nats = values["nats_per_character"]
    assert [*nats] == ["guessing", "adapted"]  # the model came without the head
    assert nats["adapted"] < nats["guessing"]


@pytest.mark.long
@pytest.mark.slow
def test_a_model_learns_the_language_of_a_text(tmp_path, monkeypatch, capsys):
    folder = inputs(tmp_path / "whole")
    monkeypatch.chdir(folder)
    assert adapt.main(FLAGS) == 0
    assert "without a head for masked words and next sentences" in capsys.readouterr().out
    assert (folder / "adapted/model/vocab.txt").exists()
    check_that_it_learned(json.loads((folder / "adapted" / "adaptation.json").read_text()))
