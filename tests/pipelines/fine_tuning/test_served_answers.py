"""Served answers compared with offline ones; tests/tools/benchmarks/test_served.py has tables."""

import numpy as np
import pytest

from pipelines.fine_tuning.served_answers import Answer, Comparison, compare_served


def comparison(*offline):
    """Texts whose answer is their length, and a number that is its half."""

    def answers(found):
        for count in found["count"]:
            yield Answer(int(count), (count / 2,), "counted")

    texts = ["a", "bb", "ccc"]
    return Comparison("lengths", texts, {"text": texts}, list(offline), "text", answers)


def ask(text):
    return {"count": np.array([len(one) for one in text.numpy()])}


def test_rows_are_asked_in_calls_of_a_size_after_one_that_traces():
    calls = []

    def counted(text):
        calls.append(len(text.numpy()))
        return ask(text)

    result = compare_served(counted, comparison(*(Answer(n, (n / 2,)) for n in (1, 2, 3))), 2)
    assert calls == [2, 2, 1]
    assert (result.count, result.differing, result.furthest) == (3, [], 0.0)


def test_what_differs_or_has_no_offline_answer_is_named():
    offline = Answer(1, (0.5,)), Answer(4, (1.25,)), None
    result = compare_served(ask, comparison(*offline), 3)
    assert [(name, one) for name, one, _ in result.differing] == [("bb", offline[1]), ("ccc", None)]
    assert str(result.differing[0][2]) == "2 1 counted"
    assert result.furthest == 0.25


def test_numbers_that_are_not_as_many_are_no_comparison():
    with pytest.raises(ValueError, match="zip"):
        compare_served(ask, comparison(Answer(1, (0.5, 0.5)), Answer(2), Answer(3)), 3)
