"""What once failed, and a few new cases."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One for all, for making the valid files takes as long as many cases."""
    return tmp_path_factory.mktemp("fuzz")


def fuzz(folder, *words):
    """Runs the command; gives the exit code, and the report's text."""
    report = folder / "report.md"
    report.unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", f"--report={report}", f"--folder={folder}", *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert report.exists(), done.stderr[-3000:]
    return done.returncode, report.read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.slow
def test_a_hundred_cases_end_well(folder):
    code, report = fuzz(folder, "--cases=120")
    assert code == 0, report


@pytest.mark.slow
def test_what_once_failed_ends_well(folder):
    code, report = fuzz(folder, "--corpus")
    assert code == 0, report


@pytest.mark.long
def test_every_reader_reads_the_valid_files(folder):
    code, report = fuzz(folder, "--valid")
    assert code == 0, report
