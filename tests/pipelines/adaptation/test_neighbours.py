import itertools

import numpy as np
import pytest

from pipelines.adaptation.neighbours import Neighbours, placed

WORDS = 40


def two_topics(sentences=400, seed=0):
    """Sentences of the even words, and sentences of the odd ones."""
    draw = np.random.default_rng(seed)
    near = Neighbours(WORDS)
    lines = [2 * draw.integers(0, WORDS // 2, 8) + draw.integers(0, 2) for _ in range(sentences)]
    near.add(np.concatenate(lines), np.arange(0, 8 * sentences + 1, 8))
    return near


def test_what_stands_near_is_counted_within_sentences_and_the_nearer_the_more():
    near = Neighbours(4)
    near.add(np.array([0, 1, 2, 3, 3]), np.array([0, 3, 5]))
    assert near.near.toarray().tolist() == [
        [0, 1, 0.5, 0],
        [1, 0, 1, 0],
        [0.5, 1, 0, 0],
        [0, 0, 0, 2],
    ]


def test_text_may_come_in_any_pieces():
    ids, offsets = np.arange(12) % 5, np.array([0, 4, 7, 12])
    whole, pieces = Neighbours(5), Neighbours(5)
    whole.add(ids, offsets)
    for start, end in itertools.pairwise(offsets):
        pieces.add(ids[start:end], np.array([0, end - start]))
    np.testing.assert_allclose(whole.near.toarray(), pieces.near.toarray())
    np.testing.assert_array_equal(whole.counts, pieces.counts)


def test_words_of_the_same_company_have_vectors_alike():
    used, vectors = two_topics().vectors(4)
    alike = vectors @ vectors.T
    same = (used[:, None] - used) % 2 == 0
    np.fill_diagonal(same, False)
    assert alike[same].mean() > alike[~same & ~np.eye(len(used), dtype=bool)].mean() + 0.5
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)


def test_a_rare_token_has_no_vector_and_the_same_text_gives_the_same_ones():
    near = two_topics()
    near.add(np.array([1, 2, 3]), np.array([0, 3]))
    near.counts[7] = 4
    used, vectors = near.vectors(4)
    assert 7 not in used
    np.testing.assert_array_equal(vectors, near.vectors(4)[1])


@pytest.mark.parametrize("words", [0, 1])
def test_a_text_of_hardly_any_word_gives_no_vectors(words):
    near = Neighbours(4)
    if words:
        near.add(np.zeros(9, np.int64), np.array([0, 9]))
    assert len(near.vectors(3)[0]) == 0


def test_new_tokens_stand_where_a_rotation_of_the_known_ones_takes_them():
    draw = np.random.default_rng(1)
    table = draw.normal(size=(60, 8)).astype(np.float32)
    turn = np.linalg.qr(draw.normal(size=(8, 8)))[0]
    vectors = ((table - table.mean(axis=0)) @ turn).astype(np.float32)
    grown = np.concatenate([table[:50], np.zeros((10, 8), np.float32)])
    moved = placed(grown, range(50, 60), np.arange(60), vectors)
    np.testing.assert_array_equal(moved[:50], grown[:50])
    own, found = table[50:] - table.mean(axis=0), moved[50:] - table[:50].mean(axis=0)
    cosines = (own * found).sum(1) / np.linalg.norm(own, axis=1) / np.linalg.norm(found, axis=1)
    assert cosines.min() > 0.9
    length = np.linalg.norm(table[:50] - table[:50].mean(axis=0), axis=1).mean()
    assert np.linalg.norm(found, axis=1).mean() == pytest.approx(length, rel=1e-4)


def test_a_new_token_without_a_vector_stays_what_it_is_as_all_do_where_none_was_known():
    table = np.ones((4, 2), np.float32)
    vectors = np.eye(2, dtype=np.float32)
    assert placed(table, [3], np.array([0, 1]), vectors) is table
    assert placed(table, [0, 1], np.array([0, 1]), vectors) is table
