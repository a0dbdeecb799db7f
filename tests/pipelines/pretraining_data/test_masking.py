import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.pretraining_data.draws import example_keys, seed_word
from pipelines.pretraining_data.masking import (
    NEXT_TOKEN,
    PREVIOUS_TOKEN,
    MaskingRules,
    choose_positions,
    mask_examples,
    predict_neighbours,
)
from pipelines.pretraining_data.pairs import PaddedExamples

CLS, SEP, MASK, WORD, MORE = 1, 2, 3, 10, 60
CONTINUATION = np.arange(100) >= 50
RULES = MaskingRules(20, 0.15, MASK, CONTINUATION, np.arange(5, 100, dtype=np.uint16))
WHOLE = dataclasses.replace(RULES, whole_words=True)


def _keys(number: int) -> np.ndarray:
    return example_keys(np.arange(number, dtype=np.uint64), seed_word(3))


def _rows(a: list[int], b: list[int], length: int = 32, copies: int = 1) -> PaddedExamples:
    ids = [CLS, *a, SEP, *b, SEP]
    row = np.array(ids + [0] * (length - len(ids)), np.uint16)
    many = np.ones(copies, np.int64)
    return PaddedExamples(np.tile(row, (copies, 1)), many * len(a), many * len(b))


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(5, 99), min_size=1, max_size=14),
    st.lists(st.integers(5, 99), min_size=1, max_size=14),
    st.integers(1, 8),
    st.sampled_from([0.05, 0.15, 0.5, 1.0]),
    st.sampled_from([(False, 1), (True, 1), (True, 3), (False, 2)]),
)
def test_masking_keeps_its_promises(a, b, most, share, kind):
    rules = dataclasses.replace(
        RULES,
        max_predictions=most,
        probability=share,
        whole_words=kind[0],
        max_ngram=kind[1],
        replacements=np.array([42], np.uint16),
    )
    rows = _rows(a, b)
    before = rows.ids.copy()
    masked = mask_examples(rows, _keys(1), rules)
    count, positions = int(masked.counts[0]), masked.positions[0]
    chosen = positions[:count]
    assert count <= min(most, max(1, round((len(a) + len(b) + 3) * share)))
    assert (np.diff(chosen) > 0).all()
    assert (before[0, chosen] == masked.ids[0, :count]).all()
    assert not np.isin(before[0, chosen], [CLS, SEP]).any()
    assert (chosen < len(a) + len(b) + 2).all()
    assert not positions[count:].any()
    untouched = np.delete(np.arange(32), chosen)
    assert (rows.ids[0, untouched] == before[0, untouched]).all()
    for position in chosen:
        assert rows.ids[0, position] in (MASK, before[0, position], 42)


def test_every_position_is_as_likely():
    rows = _rows([WORD, MORE, MORE, WORD], [MORE, WORD, WORD], copies=20_000)
    counts = choose_positions(rows, _keys(20_000), RULES).sum(axis=0)
    masked = counts[[1, 2, 3, 4, 6, 7, 8]]
    assert counts.sum() == masked.sum()
    assert abs(masked / masked.sum() - 1 / 7).max() < 0.01


def test_tokens_of_a_word_are_masked_together():
    rows = _rows([WORD, MORE, WORD, WORD, MORE, MORE], [WORD, MORE] * 7, copies=300)
    chosen = choose_positions(rows, _keys(300), WHOLE)
    words = [(1, 2), (3,), (4, 5, 6), *((start, start + 1) for start in range(8, 22, 2))]
    for word in words:
        together = chosen[:, list(word)]
        assert (together.all(axis=1) == together.any(axis=1)).all()


def test_ngrams_are_runs_of_words_shorter_ones_more_often():
    rules = dataclasses.replace(RULES, max_ngram=3, max_predictions=3, probability=0.06)
    rows = _rows([WORD] * 50, [WORD] * 20, length=80, copies=4000)
    chosen = choose_positions(rows, _keys(4000), rules)
    assert (chosen.sum(axis=1) <= 4).all()
    runs = np.diff(
        np.flatnonzero(
            np.diff(np.pad(chosen[chosen.sum(axis=1) == 3], ((0, 0), (1, 1))).astype(int).ravel())
        )[:]
    ).reshape(-1)[::2]
    share = np.bincount(runs, minlength=4)[1:4] / len(runs)
    assert share[0] > share[1] > 0.05
    assert share[2] > 0.05


def test_ngrams_do_not_run_from_a_into_b():
    rules = dataclasses.replace(RULES, max_ngram=3, max_predictions=2, probability=0.01)
    chosen = choose_positions(_rows([WORD], [WORD, WORD], copies=500), _keys(500), rules)
    assert not (chosen[:, 1] & chosen[:, 3]).any()
    # One position is wanted: a run over both words would not fit, and nothing would be masked.
    one_word_each = choose_positions(_rows([WORD], [WORD], copies=500), _keys(500), rules)
    assert (one_word_each.sum(axis=1) == 1).all()


@pytest.mark.parametrize("shares", [(0.8, 0.1), (0.0, 0.0)])
def test_shares_of_mask_same_and_random(shares):
    rules = dataclasses.replace(
        RULES, mask_share=shares[0], same_share=shares[1], replacements=np.array([42], np.uint16)
    )
    rows = _rows([WORD] * 12, [WORD] * 12, copies=5000)
    mask_examples(rows, _keys(5000), rules)
    total = 5000 * 4
    assert abs((rows.ids == MASK).sum() / total - shares[0]) < 0.015
    assert abs((rows.ids == 42).sum() / total - (1 - sum(shares))) < 0.015


CLS, SEP = 1, 2
IDS = np.array([[CLS, 50, 51, SEP, 60, SEP, 0], [CLS, 70, 71, 72, 73, SEP, 0]], np.uint16)


@pytest.mark.parametrize(("objective", "step"), [(NEXT_TOKEN, 1), (PREVIOUS_TOKEN, -1)])
def test_every_token_of_the_text_is_predicted_once_from_its_neighbour(objective, step):
    pairs = PaddedExamples(IDS[:1].copy(), np.array([2]), np.array([1]))
    text = PaddedExamples(IDS[1:].copy(), np.array([4]), np.array([0]), pairs=False)
    for examples, tokens in ((pairs, [50, 51, 60]), (text, [70, 71, 72, 73])):
        found, before = predict_neighbours(examples, objective), examples.ids.copy()
        count = found.counts[0]
        assert found.ids[0, :count].tolist() == tokens
        positions = found.positions[0, :count]
        assert examples.ids[0, positions + step].tolist() == tokens
        assert not found.ids[0, count:].any()
        np.testing.assert_array_equal(examples.ids, before)
