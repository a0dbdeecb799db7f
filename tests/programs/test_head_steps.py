"""The step of every kind of head on two devices is that of one; lengths are compiled once."""

import json
import os

import numpy as np
import pytest

from tests.support import compiling
from tests.support.programs import Program

pytestmark = [pytest.mark.slow, pytest.mark.long]

HEADS = ("regression", "span", "choices")
STRATEGIES = ("one_device", "mirrored")

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
def test_a_step_on_two_devices_is_that_of_one(results, head):
    expected, found = (results[strategy][head] for strategy in STRATEGIES)
    np.testing.assert_allclose(found["losses"], expected["losses"], rtol=LOSSES_WITHIN)
    np.testing.assert_allclose(found["weights"], expected["weights"], rtol=0, atol=WEIGHTS_WITHIN)


def test_batches_of_like_lengths_are_compiled_once_for_each_length(results):
    lengths = results["one_device"]["lengths"]
    assert lengths["seen"] == [5, 24]
    assert sorted(lengths["traced"]) == lengths["seen"]
