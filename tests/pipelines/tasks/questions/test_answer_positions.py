"""Spans of words narrowed to the answer's tokens; positions are tested with the rows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipelines.fine_tuning.text_rows import Spans
from pipelines.tasks.questions.rows import improve_spans
from tests.support.plain_questions import improve

IDS = st.lists(st.integers(0, 2), max_size=4)


@given(st.lists(st.tuples(st.lists(st.integers(0, 2), max_size=9), IDS), min_size=1, max_size=5))
def test_spans_are_narrowed_as_by_the_plain_rule(pairs):
    """Every passage is all span."""
    ids = np.array([x for passage, _ in pairs for x in passage], np.int32)
    ends = np.cumsum([len(passage) for passage, _ in pairs])
    first, last = np.concatenate([[0], ends[:-1]]), ends - 1
    lengths = np.array([len(answer) for _, answer in pairs])
    flat = np.array([x for _, answer in pairs for x in answer], np.int32)
    answers = Spans(flat, np.cumsum(lengths) - lengths, lengths)
    ours = np.stack(improve_spans(ids, first, last, answers), axis=1)
    for number, (_, answer) in enumerate(pairs):
        expected = improve(ids.tolist(), int(first[number]), int(last[number]), answer)
        assert tuple(ours[number]) == expected
