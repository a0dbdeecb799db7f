import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipelines.pretraining_data.draws import Purpose, example_keys, seed_word
from pipelines.pretraining_data.truncation import dropped_from_front, truncated_lengths

KEYS = example_keys(np.arange(2000, dtype=np.uint64), seed_word(1))


def _one_at_a_time(len_a: int, len_b: int, room: int) -> tuple[int, int]:
    """The rule as it is told: one token of the longer side, of B where they are equal."""
    while len_a + len_b > room:
        if len_a > len_b:
            len_a -= 1
        else:
            len_b -= 1
    return len_a, len_b


@given(st.integers(1, 60), st.integers(0, 60), st.integers(2, 70))
def test_closed_form_is_the_rule(len_a, len_b, room):
    a, b = truncated_lengths(np.array([len_a]), np.array([len_b]), room)
    assert (a[0], b[0]) == _one_at_a_time(len_a, len_b, room)


def test_half_of_the_lost_tokens_go_from_the_front():
    front = dropped_from_front(np.full(2000, 40), KEYS, Purpose.TRUNCATE_A)
    assert abs(front.mean() - 20) < 0.3
    assert abs(front.var() - 10) < 1.5
    assert front.min() >= 0
    assert front.max() <= 40


def test_sides_lose_independently():
    lost = np.full(2000, 40)
    of_a = dropped_from_front(lost, KEYS, Purpose.TRUNCATE_A)
    of_b = dropped_from_front(lost, KEYS, Purpose.TRUNCATE_B)
    assert abs(np.corrcoef(of_a, of_b)[0, 1]) < 0.1


def test_a_giant_sentence_follows_the_same_bits_as_a_long_one():
    """Around the point where the work is done one sentence at a time, nothing jumps."""
    lost = np.array([1023, 1024, 1025, 1088, 1089])
    front = dropped_from_front(lost, np.repeat(KEYS[:1], 5), Purpose.TRUNCATE_A)
    assert (np.diff(front) >= 0).all()
    assert (np.diff(front) <= np.diff(lost)).all()


def test_millions_of_tokens_are_no_special_case():
    lost = np.array([5_000_000, 3])
    front = dropped_from_front(lost, KEYS[:2], Purpose.TRUNCATE_B)
    assert abs(front[0] - 2_500_000) < 10_000
    assert 0 <= front[1] <= 3
