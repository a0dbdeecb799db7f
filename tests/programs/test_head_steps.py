"""The step of every kind of head: under XLA and on two devices that of one; lengths traced once."""

import json
import os

import numpy as np
import pytest

from tests.support import compiling
from tests.support.programs import Program

pytestmark = [pytest.mark.slow, pytest.mark.long]

HEADS = ("regression", "span", "choices", "features")
STRATEGIES = {"one_device": 1, "mirrored": 2}

# Over two steps of a usual rate, 5e-5: sums in another order.
WEIGHTS_WITHIN, LOSSES_WITHIN = 6e-7, 2e-5


@pytest.fixture(scope="module")
def results():
    processes = {
        strategy: Program(
            ["tests.support.head_steps", strategy],
            {**os.environ, "XLA_FLAGS": compiling.QUICKLY},
        )
        for strategy in STRATEGIES
    }
    found = {}
    for strategy, process in processes.items():
        out, error = process.communicate()
        assert process.returncode == 0, error[-3000:]
        found[strategy] = json.loads(out)
    return found


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize(("strategy", "compiler"), [("one_device", " xla"), ("mirrored", "")])
def test_a_step_is_that_of_one_device_without_xla(results, head, strategy, compiler):
    expected, found = results["one_device"][head], results[strategy][head + compiler]
    np.testing.assert_allclose(found["losses"], expected["losses"], rtol=LOSSES_WITHIN)
    np.testing.assert_allclose(found["weights"], expected["weights"], rtol=0, atol=WEIGHTS_WITHIN)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_batches_of_like_lengths_are_compiled_once_for_each_length(results, strategy):
    """On one device by XLA, on two without it: every replica has a graph of its own."""
    lengths = results[strategy]["lengths"]
    assert lengths["seen"] == [5, 24]
    assert sorted(lengths["traced"]) == sorted(lengths["seen"] * STRATEGIES[strategy])


def test_one_fixed_length_is_traced_once_in_all(results):
    assert results["one_device"]["fixed length"] == {"seen": [24], "traced": [24]}
