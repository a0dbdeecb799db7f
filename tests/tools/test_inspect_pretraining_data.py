import pytest

from tests.support.pretraining_corpus import make_config
from tools import create_pretraining_data, inspect_pretraining_data


@pytest.fixture
def shards(tmp_path, capsys):
    config = make_config(tmp_path)
    arguments = [
        f"--input_file={config.input_file}",
        f"--vocab_file={config.vocab_file}",
        f"--output_file={config.output_file}",
        "--max_seq_length=32",
        "--max_predictions_per_seq=4",
        "--num_workers=0",
    ]
    assert create_pretraining_data.main(arguments) == 0
    capsys.readouterr()
    return [f"--input_file={config.output_file}", f"--vocab_file={config.vocab_file}"]


def test_as_many_examples_are_shown_as_asked_for(shards, capsys):
    assert inspect_pretraining_data.main([*shards, "--num_samples=2"]) == 0
    assert capsys.readouterr().out.count("[CLS]") == 2


def test_a_mistake_is_one_sentence(shards, capsys):
    assert inspect_pretraining_data.main([*shards, "--max_examples=0"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("Error: --max_examples=0")
    assert said.count("\n") == 1
