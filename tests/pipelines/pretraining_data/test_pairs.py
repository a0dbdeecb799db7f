import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipelines.pretraining_data.draws import Purpose, example_keys, seed_word
from pipelines.pretraining_data.pairs import dropped_from_front, partner_documents

KEYS = example_keys(np.arange(2000, dtype=np.uint64), seed_word(1))


def test_half_of_the_lost_tokens_go_from_the_front():
    front = dropped_from_front(np.full(2000, 40), KEYS, Purpose.TRUNCATE_A)
    assert abs(front.mean() - 20) < 0.3
    assert abs(front.var() - 10) < 1.5
    assert front.min() >= 0
    assert front.max() <= 40


def test_a_giant_sentence_follows_the_same_bits_as_a_long_one():
    """Around the point where the work is done one sentence at a time, nothing jumps."""
    lost = np.array([1023, 1024, 1025, 1088, 1089])
    front = dropped_from_front(lost, np.repeat(KEYS[:1], 5), Purpose.TRUNCATE_A)
    assert (np.diff(front) >= 0).all()
    assert (np.diff(front) <= np.diff(lost)).all()


REQUEST_KEYS = example_keys(np.arange(30_000, dtype=np.uint64), seed_word(1))


def test_every_other_document_is_as_likely():
    own = np.full(len(REQUEST_KEYS), 2)
    counts = np.bincount(partner_documents(REQUEST_KEYS, own, 6), minlength=6)
    assert counts[2] == 0
    assert abs(np.delete(counts, 2) - 6000).max() < 350  # five standard deviations


@given(st.integers(2, 9), st.integers(0, 8))
def test_a_partner_is_never_the_own_document(documents, own):
    own = min(own, documents - 1)
    chosen = partner_documents(REQUEST_KEYS[:200], np.full(200, own), documents)
    assert (chosen != own).all()
    assert ((chosen >= 0) & (chosen < documents)).all()


def test_tries_run_out_as_in_the_reference():
    """Of two documents the own one is drawn n times with probability 2 ** -n."""
    own = np.zeros(len(REQUEST_KEYS), np.int64)
    same = (partner_documents(REQUEST_KEYS, own, 2, same_tries=3) == 0).mean()
    assert abs(same - 1 / 8) < 0.01
