"""Every reader on valid files, and a few spoiled ones."""

import pytest

from tests.support import programs


@pytest.mark.long
@pytest.mark.slow
def test_valid_files_are_read_and_spoiled_ones_end_well(tmp_path):
    report = tmp_path / "report.md"
    done = programs.run(["tests.fuzz", "--cases=30", f"--report={report}"])
    assert report.exists(), done.stderr[-3000:]
    assert done.returncode == 0, report.read_text(encoding="utf-8")
