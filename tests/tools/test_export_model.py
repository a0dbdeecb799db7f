"""export_model as a user runs it."""

import pytest

from tests.support.model_folders import write_classifier
from tools import export_model


def run(tmp_path, capsys, *flags):
    model = write_classifier(tmp_path / "model", ["no", "yes"])
    code = export_model.main([f"--model={model}", f"--output_dir={tmp_path}/out", *flags])
    captured = capsys.readouterr()
    return code, captured.out, captured.err.strip()


def test_openvino_says_what_goes_in_and_what_the_client_gives(tmp_path, capsys):
    pytest.importorskip("openvino", reason="needs the extra `openvino`")
    code, out, _ = run(tmp_path, capsys, "--format=openvino")
    assert code == 0
    assert "  input_ids, input_mask, segment_ids -> logits\n" in out
    assert "  client.py: text -> label\n" in out
    assert "Its own runtime: largest difference" in out
    assert " ms for a row of 32 tokens.\n" in out


def test_a_saved_model_is_what_export_saved_model_writes(tmp_path, capsys):
    code, out, _ = run(tmp_path, capsys, "--noverify")
    assert (code, "  text: text -> label, logits, probabilities" in out) == (0, True)
    assert "MB, with client.py, which sends texts\n" in out
    assert (tmp_path / "out" / "saved_model.pb").exists()


def test_an_unknown_format_is_one_sentence(tmp_path, capsys):
    code, _, error = run(tmp_path, capsys, "--format=caffe")
    assert code == 1
    assert "--format" in error
    assert len(error.splitlines()) == 1
