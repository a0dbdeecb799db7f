import json

import pytest

from tests.support.pretraining_corpus import make_config
from tools.benchmarks import pretraining_data


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
