import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipelines.records.check import Expected, check_shards, find_shards
from pipelines.runners import local
from tests.support.pretraining_corpus import make_config
from tools import create_pretraining_data, inspect_pretraining_data


def _arguments(folder: Path, *others: str) -> list[str]:
    """A whole command line; other flags stand in place of its own."""
    config = make_config(folder)
    words = [
        f"--input_file={config.input_file}",
        f"--vocab_file={config.vocab_file}",
        f"--output_file={config.output_file}",
        "--max_seq_length=32",
        "--max_predictions_per_seq=4",
        "--num_workers=0",
    ]
    named = tuple(word.partition("=")[0] for word in others)
    return [*(word for word in words if not word.startswith(named)), *others]


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
    assert page.read_text().count("<svg") == 4


def test_a_beam_that_is_not_installed_is_one_sentence(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    arguments = [*_arguments(tmp_path), "--runner=DirectRunner"]
    assert create_pretraining_data.main(arguments) == 1
    said = "Error: --runner=DirectRunner needs the package apache_beam, which is not installed; "
    assert capsys.readouterr().err.startswith(said)


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


def test_files_that_are_named_one_by_one_are_the_shards(tmp_path, capsys):
    """As in the original: `--input_file=a.txt,b.txt --output_file=a.tfrecord,b.tfrecord`."""
    text = tmp_path / "corpus.txt"
    named = f"--output_file={tmp_path}/two/a.tfrecord,{tmp_path}/two/b.tfrecord"
    arguments = _arguments(tmp_path, named, f"--input_file={text},{text}")
    assert create_pretraining_data.main(arguments) == 0
    assert "in 2 shards" in capsys.readouterr().out
    shards = find_shards([f"{tmp_path}/two/a.tfrecord", f"{tmp_path}/two/b.tfrecord"])
    assert [shard.path.name for shard in shards] == ["a.tfrecord", "b.tfrecord"]
    assert all(shard.entry.counts["examples"] > 20 for shard in shards)
    whole = find_shards([f"{tmp_path}/two"])
    assert [shard.path.name for shard in whole] == ["a.tfrecord", "b.tfrecord"]
    check_shards(shards, Expected(max_seq_length=32, max_predictions_per_seq=4))


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--output_file={}/folder/"], "must be the common name of all shards"),
        (["--output_file={}/a,"], "must be the common name of all shards"),
        (["--output_file={}/a,{}/a"], "different files of one folder"),
        (["--output_file={}/a,{}/b/a"], "different files of one folder"),
        (["--output_file={}/a,{}/b", "--num_shards=3"], "contradicts the 2 files"),
        (["--output_file={}"], "is a folder; give the shards a name in it"),
        (["--input_file="], "--input_file names no file"),
        (["--max_predictions_per_seq=0"], "must be 1 to 65535"),
    ],
)
def test_flags_that_make_no_sense_are_refused(tmp_path, capsys, flags, sentence):
    arguments = [flag.replace("{}", str(tmp_path)) for flag in flags]
    assert create_pretraining_data.main(_arguments(tmp_path, *arguments)) == 1
    assert sentence in capsys.readouterr().err
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith((".work", ".lock"))]


@pytest.mark.parametrize(
    ("runner", "flags", "said"),
    [
        ("DirectRunner", ["--max_seq_lenght=512"], "lenght is not a flag; did you mean --max_seq_"),
        ("DirectRunner", ["--nonsense"], "--nonsense is not a flag; --help lists them."),
        ("FlinkRunner", ["--dupe", "3"], "--dupe is not a flag; did you mean --dupe_factor?"),
        ("FlinkRunner", ["--max_predictions=76", "--x"], "did you mean --max_predictions_per_seq?"),
    ],
)
def test_a_mistyped_flag_is_no_option_of_beam(tmp_path, capsys, runner, flags, said):
    arguments = [*_arguments(tmp_path), f"--runner={runner}", "--direct_num_workers=1", *flags]
    assert create_pretraining_data.main(arguments) == 1
    assert said in capsys.readouterr().err


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


@pytest.mark.parametrize("runner", ["local", "DirectRunner", "FlinkRunner"])
def test_the_runner_s_name_chooses_what_makes_the_shards(tmp_path, monkeypatch, capsys, runner):
    beam = pytest.importorskip("pipelines.runners.beam", reason="needs the extra `beam`")

    def run(name):
        def summary_of(config):
            words = f"{name} {' '.join(config.beam_arguments)}"
            return SimpleNamespace(summary=lambda: words)

        return summary_of

    monkeypatch.setattr(local, "run_local", run("local"))
    monkeypatch.setattr(beam, "run_beam", run("beam"))
    options = [] if runner == "local" else ["--temp_location=gs://x"]
    words = [*_arguments(tmp_path), f"--runner={runner}", *options]
    assert create_pretraining_data.main(words) == 0
    shown = "local " if runner == "local" else "beam --temp_location=gs://x"
    assert capsys.readouterr().out == f"{shown}\n"
