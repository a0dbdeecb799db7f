import pytest

from pipelines.fine_tuning.text_rows import TextExample
from pipelines.tables.columns import Columns
from pipelines.tables.files import open_table
from pipelines.tasks.labels.labelling import Source, find_labelling


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('first,second,label\n"It\nrains.",Yes.,a\nx,,c\n,y,b\n')
    file = open_table(str(path))
    labelling = find_labelling(file, ("label",), regression=False)
    return Source(file, Columns("first", "second", ("label",)), labelling)


def test_examples_have_their_line(source):
    assert list(source.examples()) == [
        TextExample("2", "It\nrains.", "Yes.", "a"),
        TextExample("4", "x", "", "c"),
        TextExample("5", "", "y", "b"),
    ]
