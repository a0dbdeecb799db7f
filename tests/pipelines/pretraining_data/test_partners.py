import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipelines.pretraining_data.draws import example_keys, seed_word
from pipelines.pretraining_data.partners import partner_documents, partner_spans

KEYS = example_keys(np.arange(30_000, dtype=np.uint64), seed_word(1))


def test_every_other_document_is_as_likely():
    own = np.full(len(KEYS), 2)
    counts = np.bincount(partner_documents(KEYS, own, 6), minlength=6)
    assert counts[2] == 0
    assert abs(np.delete(counts, 2) - 6000).max() < 350  # five standard deviations


@given(st.integers(2, 9), st.integers(0, 8))
def test_a_partner_is_never_the_own_document(documents, own):
    own = min(own, documents - 1)
    chosen = partner_documents(KEYS[:200], np.full(200, own), documents)
    assert (chosen != own).all()
    assert ((chosen >= 0) & (chosen < documents)).all()


def test_tries_run_out_as_in_the_reference():
    """Of two documents the own one is drawn n times with probability 2 ** -n."""
    own = np.zeros(len(KEYS), np.int64)
    same = (partner_documents(KEYS, own, 2, same_tries=3) == 0).mean()
    assert abs(same - 1 / 8) < 0.01


def test_one_document_is_its_own_partner_when_tries_run_out():
    assert partner_documents(KEYS[:3], np.zeros(3, np.int64), 1, same_tries=10).tolist() == [0] * 3


def test_b_starts_anywhere_and_ends_at_the_target():
    offsets = np.arange(0, 101, 10)  # ten sentences of ten tokens
    start, length = partner_spans(
        KEYS, np.full(len(KEYS), 25), offsets, np.zeros(len(KEYS), int), np.full(len(KEYS), 10)
    )
    assert abs(np.bincount(start // 10, minlength=10) - 3000).max() < 260
    assert (length[start <= 70] == 30).all()
    assert (length[start == 80] == 20).all()  # the document ends first
    assert (length[start == 90] == 10).all()


def test_b_stays_in_its_document():
    offsets = np.arange(0, 101, 10)
    many = len(KEYS)
    start, length = partner_spans(
        KEYS, np.full(many, 99), offsets, np.full(many, 3), np.full(many, 6)
    )
    assert start.min() == 30
    assert (start + length == 60).all()


def test_at_least_one_sentence_is_taken():
    _, length = partner_spans(
        KEYS[:5], np.ones(5, int), np.array([0, 7, 14]), np.zeros(5, int), np.full(5, 2)
    )
    assert length.tolist() == [7] * 5
