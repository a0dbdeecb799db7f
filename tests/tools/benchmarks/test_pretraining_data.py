import json

import pytest

from tests.support.pretraining_corpus import make_config, make_shards
from tools.benchmarks import pretraining_data
from tools.benchmarks.pretraining_data import PretrainingDataConfig, runs_of


@pytest.mark.slow
def test_a_run_is_timed_from_text_to_shards(tmp_path, capsys):
    config = make_config(tmp_path)
    arguments = [
        f"--input_file={config.input_file}", f"--vocab_file={config.vocab_file}",
        "--workers=1", "--lengths=32", "--nowhole_words", "--dupe_factor=2",
    ]  # fmt: skip
    assert pretraining_data.main(arguments) == 0
    (row,) = json.loads(capsys.readouterr().out.splitlines()[-1])["rows"]
    assert (row["contender"], row["length"], row["workers"]) == ("ours", 32, 1)
    assert row["examples"] > 50
    assert row["peak_mib"] > 5
    assert row["seconds"] > 0


def test_whole_words_take_one_worker_and_the_original_runs_where_it_is_given():
    given = {"input_file": "text", "vocab_file": "vocab.txt", "workers": (1, 2)}
    assert [(run.workers, run.whole_words) for run in runs_of(PretrainingDataConfig(**given))] == [
        (1, False),
        (2, False),
        (1, True),
    ]
    both = runs_of(PretrainingDataConfig(**given, original="bert", whole_words=False))
    assert [run.contender for run in both] == ["original", "ours", "ours"]


def test_shards_are_created_with_a_vocabulary(capsys):
    assert pretraining_data.main(["--input_file=text"]) == 1
    assert "give --vocab_file" in capsys.readouterr().err


def test_rates_and_the_size_of_the_index_are_told(tmp_path, capsys):
    config = make_shards(tmp_path)
    arguments = [
        "--task=reading",
        f"--input_file={config.output_file}",
        "--batch_size=16",
        "--seconds=0.05",
    ]
    assert pretraining_data.main(arguments) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["index_bytes_per_record"] == 4.0
    assert min(told["examples_per_second"].values()) > 0
