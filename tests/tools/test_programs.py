import pytest

from tools.programs import ToolPrograms


@pytest.mark.slow
def test_a_run_in_its_own_process_prints_into_its_log(tmp_path):
    log = tmp_path / "log.txt"
    flags = ["--input_file=/no/such/file", f"--output_file={tmp_path}/out.txt"]
    assert ToolPrograms().run("split_sentences", flags, log) == 1
    assert "no such file" in log.read_text() or "matches no file" in log.read_text()
