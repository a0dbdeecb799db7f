"""Requests that no client would send; a command sends any number of them."""

import pytest

from tests.support.hostile_http import findings


@pytest.mark.slow
def test_each_hostile_request_is_answered_or_cut_and_the_server_lives():
    counts, wrong, before, after = findings(400, seed=1)
    assert wrong == []
    assert counts.total() == 400
    assert {"400", "404", "405", "408", "413", "cut"} <= set(counts)
    assert after < 4 * before  # it is small without a model
