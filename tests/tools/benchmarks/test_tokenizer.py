import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pretraining_corpus import write_vocabulary
from tools.benchmarks import tokenizer

LINES = ["the fox ran home.", "A slowly hen saw Foxes", "", "the unknown word"] * 256


@pytest.mark.long
@pytest.mark.slow
def test_every_tokenizer_is_timed_and_held_to_the_reference(tmp_path):
    vocab_file = write_vocabulary(tmp_path)
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{line}\n" for line in LINES))
    command = [
        sys.executable, "-m", "tools.benchmarks.tokenizer",  # it sets TensorFlow's threads
        f"--vocab_file={vocab_file}", f"--input_file={text}", "--text_field=", "--num_lines=1024",
        "--rounds=2",
    ]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3])
    assert result.returncode == 0, result.stderr
    rows = [json.loads(row) for row in result.stdout.splitlines() if row[:1] == "{"]
    differing = {row["tokenizer"]: row["differing_lines"] for row in rows[:-1]}
    assert len(differing) == 7
    assert differing["this project"] == differing["this project, in a graph"] == 0
    speeds = {row["tokenizer"]: row["mb_per_second"] for row in rows[:-1]}
    assert len(speeds["this project"]) == 2
    assert rows[-1]["start_up_seconds"] > 0
    assert rows[-1]["mb_per_second_2 processes"] > 0


def test_a_line_that_comes_out_differently_is_counted(tmp_path):
    vocab_file = str(write_vocabulary(tmp_path))
    cuts = {"drops a token": (lambda lines: lines, lambda lines: [[] for _ in lines])}
    assert tokenizer.differing_lines(cuts, [["the fox", "", "a hen"]], vocab_file, True) == {
        "drops a token": 2
    }
