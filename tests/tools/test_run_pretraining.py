"""What a user can do wrong before training starts, each answered in one sentence."""

import json
import shutil

import pytest

from tests.support.pretraining_run import GOLDEN, RECORDED
from tools.run_pretraining import main


def words(output_dir, **changes):
    flags = {**RECORDED, "output_dir": output_dir, **changes}
    return [
        f"--{name}={str(value).lower() if isinstance(value, bool) else value}"
        for name, value in flags.items()
        if value is not None
    ]


def sentence(capsys, output_dir, **changes):
    assert main(words(output_dir, **changes)) == 1
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("Error: ")
    return error


def changed_config(folder, **changes):
    values = json.loads((GOLDEN / "bert_config.json").read_text())
    path = folder / "bert_config.json"
    path.write_text(json.dumps({**values, **changes}))
    shutil.copy(GOLDEN / "vocab.txt", folder)
    return path


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"do_train": False}, "Nothing to do; give --do_train or --do_eval"),
        ({"input_file": None}, "--input_file is missing"),
        ({"input_file": "nowhere*"}, "'nowhere*' matches no file"),
        ({"bert_config_file": None}, "--bert_config_file is missing"),
        ({"bert_config_file": "no.json"}, "no.json: no such file"),
        ({"init_checkpoint": "no.ckpt"}, "no.ckpt: is neither a model directory nor"),
        ({"max_seq_length": 256}, "--max_seq_length=256 is more than the 128 positions"),
        ({"max_seq_length": 32}, "have length 64, not 32"),
        ({"max_predictions_per_seq": 5}, "--max_predictions_per_seq=10"),
        ({"phase2_input_file": "x", "phase2_num_train_steps": 40}, "leaves no steps"),
    ],
)
def test_mistakes_are_answered_in_one_sentence(capsys, tmp_path, changes, expected):
    assert expected in sentence(capsys, tmp_path / "run", **changes)


def test_a_checkpoint_of_another_shape_is_refused(capsys, tmp_path):
    config = changed_config(tmp_path, hidden_size=32)
    assert "bert_model.ckpt" in sentence(capsys, tmp_path / "run", bert_config_file=config)


def test_a_vocabulary_larger_than_the_models_table_is_noticed_in_the_shards(capsys, tmp_path):
    config = changed_config(tmp_path, vocab_size=500)
    error = sentence(capsys, tmp_path / "run", bert_config_file=config, init_checkpoint=None)
    assert "only knows 0 to 499 (vocab_size)" in error


def test_no_vocabulary_is_asked_for_before_training(capsys, tmp_path):
    config = changed_config(tmp_path)
    (tmp_path / "vocab.txt").unlink()
    error = sentence(capsys, tmp_path / "run", bert_config_file=config, vocab_file=None)
    assert "--vocab_file is missing" in error


def test_an_output_folder_that_is_a_file_is_refused(capsys, tmp_path):
    (tmp_path / "run").write_text("")
    assert "cannot be written" in sentence(capsys, tmp_path / "run")


def test_a_truncated_shard_is_named(capsys, tmp_path):
    content = (GOLDEN / "train.tfrecord").read_bytes()
    shard = tmp_path / "cut.tfrecord"
    shard.write_bytes(content[: len(content) // 2])
    assert "cut.tfrecord" in sentence(capsys, tmp_path / "run", input_file=shard)
