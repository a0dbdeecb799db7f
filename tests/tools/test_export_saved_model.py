"""What a user may do wrong with export_saved_model."""

import json

import pytest

from tests.support.model_folders import write_pretrainer
from tools import export_saved_model


@pytest.fixture
def model(tmp_path):
    return write_pretrainer(tmp_path / "model")


def run(model, capsys, *flags):
    output = model.parent / "saved"
    code = export_saved_model.main(
        [f"--model_dir={model}", f"--output_dir={output}", "--noverify", *flags]
    )
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out, captured.err.strip()


def refused(model, capsys, sentence, *flags):
    code, _, error = run(model, capsys, *flags)
    assert code == 1
    assert sentence in error.splitlines()[-1]
    assert not (model.parent / "saved").exists()


def test_an_export_says_what_it_serves(model, capsys):
    code, out, _ = run(model, capsys)
    assert code == 0
    assert "  fill_mask_text: text -> mask_counts, num_truncated, probabilities, tokens" in out
    assert (model.parent / "saved" / "saved_model.pb").exists()


def test_a_missing_model_directory_is_named(model, capsys):
    refused(model, capsys, "/no/model: no such file or folder", "--model_dir=/no/model")


@pytest.mark.parametrize("name", ["config.json", "vocab.txt", "model.safetensors"])
def test_a_missing_file_is_named(model, capsys, name):
    (model / name).unlink()
    refused(model, capsys, name)


@pytest.mark.parametrize("name", ["config.json", "vocab.txt", "model.safetensors"])
def test_an_empty_file_is_named(model, capsys, name):
    (model / name).write_bytes(b"")
    refused(model, capsys, name)


def test_half_a_file_of_weights_is_refused(model, capsys):
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    refused(model, capsys, "model.safetensors")


def test_weights_of_another_shape_are_refused(model, capsys):
    values = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**values, "hidden_size": 32}))
    refused(model, capsys, "has the shape")


def test_a_length_over_the_positions_is_refused(model, capsys):
    refused(model, capsys, "--max_seq_length=64 is more than the 12", "--max_seq_length=64")


def test_an_output_folder_that_cannot_be_written_is_named(model, capsys):
    (model.parent / "file").write_text("")
    flag = f"--output_dir={model.parent}/file/saved"
    refused(model, capsys, "cannot be written", flag)
