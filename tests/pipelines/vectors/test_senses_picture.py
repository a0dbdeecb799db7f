"""The picture of a word's uses: nothing is cut off, and differences are seen."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from keras_bert_impl.pictures import families_for
from pipelines.vectors import senses_picture
from pipelines.vectors.senses_picture import draw_senses

COSINES = np.array([[1.0, 0.93, 0.91], [0.93, 1.0, 0.94], [0.91, 0.94, 1.0]])


@pytest.fixture
def drawn(tmp_path, monkeypatch):
    """Draws a picture and gives its figure."""

    def draw(labels, cosines=COSINES, title="'bank'"):
        figures = []
        monkeypatch.setattr(
            senses_picture, "write_png", lambda path, figure, dpi: figures.append(figure)
        )
        draw_senses(tmp_path / "x.png", labels, cosines, title)
        (figure,) = figures
        with families_for(""):
            FigureCanvasAgg(figure).draw()
        return figure

    return draw


@pytest.mark.parametrize(
    ("label", "count"),
    [("short", 2), ("a long use " * 9, 3), ("배를 타고 강을 건너는 사람들이 " * 4, 3), ("use", 16)],
    ids=["few", "long", "Hangul", "many"],
)
def test_no_label_is_cut_off(drawn, label, count):
    cosines = np.full((count, count), 0.5)
    figure = drawn([f"use {n}: {label}" for n in range(count)], cosines, title="of one word " * 9)
    inside = figure.get_tightbbox()
    assert inside.x0 >= -0.05  # inches: less than a stroke is wide
    assert inside.y0 >= -0.05
    assert inside.x1 <= figure.get_figwidth() + 0.05
    assert inside.y1 <= figure.get_figheight() + 0.05


def test_the_colours_go_from_the_lowest_to_the_highest_cosine_of_two_uses(drawn):
    (image,) = drawn(["one", "two", "three"]).axes[0].images
    assert image.get_clim() == (0.91, 0.94)
    assert np.ma.getmaskarray(image.get_array()).tolist() == np.eye(3, dtype=bool).tolist()


def test_every_two_uses_have_their_number_and_the_diagonal_has_none(drawn):
    texts = [text.get_text() for text in drawn(["one", "two", "three"]).axes[0].texts]
    assert texts == ["", "0.93", "0.91", "0.93", "", "0.94", "0.91", "0.94", ""]
