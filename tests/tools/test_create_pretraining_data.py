import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pretraining_corpus import make_config
from tools import create_pretraining_data, inspect_pretraining_data


def _arguments(folder: Path) -> list[str]:
    config = make_config(folder)
    return [
        f"--input_file={config.input_file}",
        f"--vocab_file={config.vocab_file}",
        f"--output_file={config.output_file}",
        "--max_seq_length=32",
        "--max_predictions_per_seq=4",
        "--num_workers=0",
    ]


def test_shards_are_made_and_looked_into(tmp_path, capsys):
    assert create_pretraining_data.main(_arguments(tmp_path)) == 0
    assert "examples in 1 shards" in capsys.readouterr().out
    page = tmp_path / "page.html"
    code = inspect_pretraining_data.main(
        [f"--input_file={tmp_path}/out", f"--vocab_file={tmp_path}/vocab.txt", f"--html={page}"]
    )
    shown = capsys.readouterr().out
    assert code == 0
    assert "«" in shown
    assert "random next sentence" in shown
    assert page.read_text().count("<svg") == 6


def test_google_s_flags_and_the_paper_s_ablation(tmp_path, capsys):
    arguments = [
        *_arguments(tmp_path), "--dupe_factor=2", "--do_whole_word_mask", "--random_seed=1",
        "--masked_lm_prob=0.2", "--short_seq_prob=0", "--mask_probabilities=0,0.2,0.8",
        "--nodo_next_sentence", "--max_ngram=3", "--num_shards=2",
    ]  # fmt: skip
    assert create_pretraining_data.main(arguments) == 0
    shown = capsys.readouterr().out
    assert "in 2 shards" in shown
    assert "random next" not in shown


def test_a_mistake_is_one_sentence(tmp_path, capsys):
    assert create_pretraining_data.main([*_arguments(tmp_path), "--max_seq_length=3"]) == 1
    assert capsys.readouterr().err.startswith("Error: --max_seq_length must be")


@pytest.mark.parametrize("name", ["a.tfrecord,b.tfrecord", "folder/"])
def test_the_output_is_one_common_name(tmp_path, capsys, name):
    arguments = [*_arguments(tmp_path), f"--output_file={tmp_path}/{name}"]
    assert create_pretraining_data.main(arguments) == 1
    assert "must be the one common name" in capsys.readouterr().err


@pytest.mark.slow
def test_a_full_disk_is_one_sentence_and_leaves_no_half_shard(tmp_path):
    """A limit on the size of files fails a write in the middle, as a full disk does."""
    arguments = _arguments(tmp_path)
    tool = [sys.executable, "-m", "tools.create_pretraining_data", *arguments]
    limited = ["bash", "-c", 'ulimit -f 30; exec "$@"', "bash", *tool]
    result = subprocess.run(limited, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert result.returncode == 1
    assert "cannot be written" in result.stderr
    assert "Traceback" not in result.stderr
    assert not [path for path in (tmp_path / "out").iterdir() if "-of-" in path.name]


def test_the_wrong_vocabulary_is_refused_when_looking(tmp_path, capsys):
    create_pretraining_data.main(_arguments(tmp_path))
    other = tmp_path / "other.txt"
    other.write_text((tmp_path / "vocab.txt").read_text() + "more\n")
    arguments = [f"--input_file={tmp_path}/out", f"--vocab_file={other}"]
    assert inspect_pretraining_data.main(arguments) == 1
    assert "another vocabulary" in capsys.readouterr().err
