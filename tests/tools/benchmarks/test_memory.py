import json

import pytest

from tools.benchmarks import memory


@pytest.mark.long
@pytest.mark.slow
def test_a_measured_run_stands_beside_its_estimate(capsys):
    assert memory.main(["--cases=tiny,2,32,float32,lamb,micro=2", "--vocab_size=100"]) == 0
    table, line = capsys.readouterr().out.splitlines()[1:]
    told = json.loads(line)
    assert told["case"] == "tiny,2,32,float32,lamb,micro=2"
    assert told["measured"] > 1e8  # TensorFlow alone takes more
    assert told["estimate"] >= sum(told["parts"].values())
    assert f"{told['measured'] / 1e9:.2f} GB" in table
