"""The benchmarks against peers, whole but tiny: what they print is read again."""

import importlib.util
import json

import pytest

from tools.benchmarks import inference, train_step

pytestmark = pytest.mark.slow
TINY = ["--size=tiny", "--batch_size=2", "--max_seq_length=8", "--steps=1", "--rounds=1"]
JAX = [] if importlib.util.find_spec("jax") is None else ["ours_jax"]


@pytest.mark.parametrize(
    ("benchmark", "contenders"),
    [(train_step, ["ours_fast", "ours_recompute", *JAX]), (inference, ["ours_fast", *JAX])],
)
def test_every_contender_of_ours_takes_part(capsys, benchmark, contenders):
    assert benchmark.main([*TINY, f"--contenders={','.join(contenders)}"]) == 0
    shown = capsys.readouterr().out
    lines = [json.loads(line) for line in shown.splitlines() if line.startswith("{")]
    assert [line["contender"] for line in lines] == ["ceiling", *contenders]
    for line in lines:
        assert len(line["seconds"]) == 1
        assert line["seconds"][0] > 0
        assert line["peak_bytes"][0] > 1e6
