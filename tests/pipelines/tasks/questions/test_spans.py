"""The best spans, held to the original's loops."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pipelines.tasks.questions.answers import dense_logits, find_best_spans, find_null_logits
from tests.support.made_rows import made_rows

LOGITS = arrays.arrays(np.float32, (4, 8), elements=st.integers(-2, 2).map(float))
ROWS = made_rows((0, 5, {0, 1, 2}), (0, 3, {1, 2}), (1, 0, set()), (2, 4, {0, 1, 2, 3}))


def plain_best_spans(question, start, end, n_best_size, max_answer_length):
    padded = ROWS.padded(8)
    found = []
    for row in np.flatnonzero(ROWS.examples == question):
        starts = sorted(range(8), key=lambda x: -start[row, x])[:n_best_size]
        ends = sorted(range(8), key=lambda x: -end[row, x])[:n_best_size]
        for first in starts:
            for last in ends:
                owned = padded["is_max_context"][row, first] and padded["text_end"][row, last]
                if owned and first <= last < first + max_answer_length:
                    found.append((row, first, last, start[row, first], end[row, last]))
    return sorted(found, key=lambda span: -(span[3] + span[4]))


@given(LOGITS, LOGITS, st.integers(1, 9), st.integers(1, 4))
def test_spans_are_the_originals_in_its_order_ties_too(start, end, n_best_size, max_length):
    spans = find_best_spans(ROWS, start, end, n_best_size, max_length)
    ours = list(zip(*spans[:5], strict=True))
    for question in range(3):
        first, last = spans.offsets[question : question + 2]
        assert ours[first:last] == plain_best_spans(question, start, end, n_best_size, max_length)
    assert spans.offsets[-1] == len(ours)


@given(LOGITS, LOGITS)
def test_no_answer_counts_where_it_is_least_likely(start, end):
    null = find_null_logits(ROWS, start, end)
    for question in range(3):
        rows = np.flatnonzero(ROWS.examples == question)
        row = min(rows, key=lambda x: start[x, 0] + end[x, 0])
        assert null[:, question].tolist() == [start[row, 0], end[row, 0]]


def test_logits_of_real_tokens_are_spread_over_their_rows():
    flat = np.arange(ROWS.lengths.sum(), dtype=np.float32)
    dense = dense_logits(ROWS, flat)
    assert dense.shape == (4, 8)
    assert dense[np.isfinite(dense)].tolist() == flat.tolist()
    assert dense[1, :6].tolist() == [8, 9, 10, 11, 12, 13]
    assert np.isneginf(dense[1, 6:]).all()
