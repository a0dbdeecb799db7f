import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.image import imread

from pipelines.tables.files import open_table
from pipelines.tables.writing import hardest, write_table
from pipelines.tasks.labels import own_texts
from pipelines.tasks.labels.own_texts import draw_confusion


@pytest.mark.parametrize("ending", ["tsv", "csv"])
def test_a_table_is_read_again_as_it_was_written(tmp_path, ending):
    rows = [['two\nlines, a\ttab and "marks"', "a"], ["plain", "b"]]
    rows += [["a carriage\rreturn", "b"], ["ends in both\r\n", "c"], ["last", "\r"]]
    path = write_table(tmp_path / f"t.{ending}", ["text", "label"], rows)
    read = [list(record.values.values()) for record in open_table(str(path)).records()]
    assert read == rows


@given(st.lists(st.integers(0, 9)), st.integers(1, 5))
def test_the_hardest_are_the_largest_and_the_first_of_equals(sizes, most):
    items = list(enumerate(sizes))
    found = hardest(items, lambda item: item[1] or None, most)
    assert found == sorted((i for i in items if i[1]), key=lambda i: (-i[1], i[0]))[:most]


def test_a_confusion_matrix_becomes_a_picture_with_its_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(own_texts, "_MOST_DRAWN", 5)
    numbers = np.arange(200)
    names = [f"감정 $ {number}" * 5 for number in range(50)]
    picture = imread(draw_confusion(tmp_path / "c.png", names, numbers % 50, numbers**2 % 50))
    assert min(picture.shape[:2]) > 300
    assert np.ptp(picture) > 0.5  # not blank
