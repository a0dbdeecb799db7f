import pytest

from pipelines.tables.columns import Columns
from pipelines.tables.files import open_table
from pipelines.tasks.labels.labelling import (
    Labelled,
    Source,
    find_labelling,
    text_key,
)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('first,second,label\n"It\nrains.",Yes.,a\nx,,c\n,y,b\n')
    file = open_table(str(path))
    labelling = find_labelling(file, ("label",), regression=False)
    return Source(file, Columns("first", "second", ("label",)), labelling)


def test_examples_have_their_line(source):
    assert list(source.examples()) == [
        Labelled(2, "It\nrains.", "Yes.", "a"),
        Labelled(4, "x", "", "c"),
        Labelled(5, "", "y", "b"),
    ]


def test_the_hash_tells_which_text_a_word_stands_in():
    keys = {text_key(0, "a", "b"), text_key(0, "ab", None), text_key(0, "b", "a")}
    assert len(keys) == 3
    assert text_key(7, "a", None) == text_key(7, "a", None)
    assert max(keys) < 2**64
