"""Fonts for the text of a picture."""

import numpy as np
import pytest
from fontTools.ttLib import TTFont
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, fontManager
from matplotlib.image import imread

from keras_bert_impl import pictures
from keras_bert_impl.pictures import write_png


def drawn(tmp_path, text):
    """The ink of a text: what is dark, by columns."""
    figure = Figure(figsize=(4, 1))
    figure.text(0.5, 0.5, text, fontsize=30, ha="center", va="center")
    picture = imread(write_png(tmp_path / "text.png", figure))
    return (picture[..., :3].mean(axis=-1) < 0.5).sum(axis=0)


def test_where_no_font_has_a_character_one_warning_names_packages(
    tmp_path, caplog, monkeypatch, recwarn
):
    monkeypatch.setattr(pictures, "_FAMILIES", ())
    drawn(tmp_path, "나는 배")
    (record,) = caplog.records
    assert record.getMessage().startswith("no font on this machine has some characters")
    assert "fonts-noto-cjk" in record.getMessage()
    assert not recwarn.list


def test_a_font_that_was_installed_since_matplotlib_listed_them_is_found(
    tmp_path, caplog, monkeypatch
):
    font = TTFont(findfont("DejaVu Sans"))
    for table in (one for one in font["cmap"].tables if one.isUnicode()):
        table.cmap.update({ord(letter): "A" for letter in "나는배"})
    for name in font["name"].names:
        if name.nameID in (1, 4, 16):
            name.string = "Noto Sans KR"
    font.save(tmp_path / "new.ttf")
    known = [one for one in fontManager.ttflist if one.name not in pictures._FAMILIES]
    monkeypatch.setattr(fontManager, "ttflist", known)
    pictures._load_new_fonts.cache_clear()
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [str(tmp_path / "new.ttf")])
    ink = drawn(tmp_path, "나는 배").sum()
    assert ink == pytest.approx(drawn(tmp_path, "AA A").sum(), rel=0.05)  # but for kerning
    assert not caplog.records


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


@pytest.mark.parametrize("text", ["한글 배", "漢字"])
def test_text_of_other_scripts_is_no_row_of_boxes(text, tmp_path, caplog):
    import logging

    with caplog.at_level(logging.WARNING):
        ink = drawn(tmp_path, text)
    if caplog.records:
        pytest.skip(caplog.records[0].getMessage())
    assert (ink != drawn(tmp_path, "\uffff" * len(text))).any()
