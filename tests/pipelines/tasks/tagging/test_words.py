"""The words of a text outside of a graph, held against those inside it."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.tasks.tagging.answerer import BLANKS, MARKS, RARE_BLANKS, words_of
from pipelines.tasks.tagging.served import text_characters
from tests.support.tokenization import trouble_text

ODD = st.text(st.sampled_from([*"ab각", *BLANKS, *RARE_BLANKS[:3], *MARKS]), max_size=30)


@example("\n:", False)
@given(st.one_of(ODD, trouble_text()), st.booleans())
def test_words_are_those_of_the_graph(text, split_marks):
    text = text.encode("utf-8", "ignore").decode()
    found = text_characters([text], split_marks=split_marks)
    expected = np.stack([found.word_start, found.word_end], axis=1).tolist()
    lines = words_of(text, split_marks=split_marks)
    assert [list(span) for line in lines for span in line] == expected
    line_of = found.line.numpy()  # a line break counts to the line that it begins
    for number, line in enumerate(lines, start=-int(text.startswith("\n"))):
        assert all(line_of[start] == line_of[0] + number for start, _ in line)
