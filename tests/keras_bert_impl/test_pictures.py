"""Fonts for the text of a picture."""

import matplotlib as mpl
from matplotlib.font_manager import findfont, get_font

from keras_bert_impl import pictures
from keras_bert_impl.pictures import families_for


def test_a_font_of_this_machine_is_added_for_what_matplotlib_s_own_lacks():
    own = mpl.rcParams["font.sans-serif"][0]
    with families_for("plain text"):
        assert mpl.rcParams["font.family"] == [own]
    with families_for("plain text and \u1d81"):  # Matplotlib brings STIXGeneral, which has it
        first, second = mpl.rcParams["font.family"]
    assert first == own
    assert 0x1D81 in get_font(findfont(second)).get_charmap()


def test_where_no_font_has_a_character_one_warning_names_a_package(caplog, monkeypatch):
    monkeypatch.setattr(pictures, "_family_with", lambda _: None)
    with families_for("나는 배"):
        pass
    (record,) = caplog.records
    assert record.getMessage().startswith("no font on this machine has 나, 는, 배,")
    assert "fonts-noto-cjk" in record.getMessage()
