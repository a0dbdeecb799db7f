import json

from tests.support.pretraining_corpus import make_shards
from tools.benchmarks import reading


def test_rates_and_the_size_of_the_index_are_told(tmp_path, capsys):
    config = make_shards(tmp_path)
    arguments = [f"--input_file={config.output_file}", "--batch_size=16", "--seconds=0.05"]
    assert reading.main(arguments) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["index_bytes_per_record"] == 4.0
    assert min(told["examples_per_second"].values()) > 0
