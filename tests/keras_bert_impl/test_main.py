"""`python -m keras_bert_impl`; for the installed command see tests/test_installed_package.py."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_tool_is_started_by_the_librarys_name():
    command = [sys.executable, "-m", "keras_bert_impl", "split_sentences", "--no_such_flag"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 1
    assert result.stderr.startswith("Error: ")
    assert "no_such_flag" in result.stderr
