"""Fonts for the text of a picture."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.image import imread

from keras_bert_impl import pictures
from keras_bert_impl.pictures import font_families, write_png


def drawn(tmp_path, text):
    """The ink of a text: what is dark, by columns."""
    figure = Figure(figsize=(4, 1))
    figure.text(0.5, 0.5, text, fontsize=30, ha="center", va="center")
    picture = imread(write_png(tmp_path / "text.png", figure))
    return (picture[..., :3].mean(axis=-1) < 0.5).sum(axis=0)


def test_matplotlib_s_own_font_alone_where_it_has_all():
    assert font_families("plain text, سلام") == ["DejaVu Sans"]


def test_fonts_are_added_for_what_it_lacks():
    own, *others = font_families("plain text and \u1d81")  # Matplotlib brings STIXGeneral
    assert own == "DejaVu Sans"
    assert any(0x1D81 in get_font(findfont(name)).get_charmap() for name in others)


@pytest.mark.parametrize(("text", "shown"), [("나는 배", "나, 는, 배"), ("한 न", "न, 한")])
def test_where_no_font_has_a_character_one_warning_names_packages(
    text, shown, tmp_path, caplog, monkeypatch, recwarn
):
    monkeypatch.setattr(pictures, "_fonts", lambda: iter(()))
    drawn(tmp_path, text)
    (record,) = caplog.records
    assert record.getMessage().startswith(f"no font on this machine has {shown}")
    assert "fonts-noto-cjk" in record.getMessage()
    assert not recwarn.list


def test_the_order_of_matplotlib_s_list_does_not_choose_the_font(monkeypatch):
    """It is the order of a set of names, another one in each process that makes the list."""
    from matplotlib.font_manager import fontManager

    tried = [font.fname for font in pictures._fonts()]
    monkeypatch.setattr(fontManager, "ttflist", fontManager.ttflist[::-1])
    assert [font.fname for font in pictures._fonts()] == tried


def test_arabic_is_joined_and_runs_from_right_to_left(tmp_path):
    joined = drawn(tmp_path, "باب")
    apart = drawn(tmp_path, "ب\u200cا\u200cب")  # zero-width non-joiners keep letters apart
    assert joined.sum() < apart.sum()
    # Alef, a tall stroke, ends a word that begins with a low lam and alef: it stands at the left.
    ink = np.flatnonzero(drawn(tmp_path, "ببا"))
    columns = drawn(tmp_path, "ببا")[ink[0] : ink[-1] + 1]
    assert columns[: len(columns) // 4].max() > columns[-len(columns) // 4 :].max()


def test_a_control_character_among_the_names_of_an_axis_is_drawn_as_its_escape(tmp_path):
    figure = Figure()
    axes = figure.subplots()
    axes.set_xticks([0, 1], ["a\x1b", "b"])
    write_png(tmp_path / "names.png", figure)
    assert [label.get_text() for label in axes.get_xticklabels()] == [r"a\x1b", "b"]


def test_a_control_character_is_drawn_as_its_escape(tmp_path):
    assert (drawn(tmp_path, "a\x1b") == drawn(tmp_path, r"a\x1b")).all()


@pytest.mark.parametrize("text", ["한글 배", "नमस्ते", "漢字", "สวัสดี"])
def test_text_of_other_scripts_is_no_row_of_boxes(text, tmp_path, caplog):
    import logging

    with caplog.at_level(logging.WARNING):
        ink = drawn(tmp_path, text)
    if caplog.records:
        pytest.skip(caplog.records[0].getMessage())
    assert (ink != drawn(tmp_path, "\uffff" * len(text))).any()
