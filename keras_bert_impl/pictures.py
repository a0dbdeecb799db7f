"""Pictures: figures of Matplotlib, written whole, with fonts for text in any script."""

import contextlib
import functools
import logging
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from keras_bert_impl.errors import escaped
from keras_bert_impl.files import open_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOGGER = logging.getLogger(__name__)

# Of scripts that Matplotlib's own font lacks, fonts that systems bring; it takes from each in turn.
_FAMILIES = (
    *("Noto Sans CJK JP", "Noto Sans CJK KR", "Noto Sans KR", "NanumGothic", "Malgun Gothic"),
    *("Apple SD Gothic Neo", "Hiragino Sans", "Yu Gothic", "Microsoft YaHei", "WenQuanYi Zen Hei"),
    *("Noto Sans", "Noto Sans Devanagari", "Noto Sans Bengali", "Noto Sans Tamil"),
    *("Noto Sans Thai", "Arial Unicode MS", "FreeSans", "Unifont"),
)


@functools.cache
def _load_new_fonts() -> None:
    """Adds the fonts that were installed since Matplotlib listed those of this machine."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    for path in {*findSystemFonts()} - {one.fname for one in fontManager.ttflist}:
        with contextlib.suppress(Exception):  # whatever it is, a font that cannot be read is none
            fontManager.addfont(path)


def _with_fonts(figure: "Figure") -> None:
    """Lets every text of a figure be drawn in its script, and shows control characters as escapes.

    Matplotlib shapes the text: Arabic is joined and runs from right to left.
    """
    import matplotlib as mpl
    from matplotlib.font_manager import fontManager
    from matplotlib.text import Text

    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        names = [label.get_text() for label in axis.get_ticklabels()]
        if any(name != escaped(name) for name in names):  # drawing would write them anew
            axis.set_ticks(axis.get_ticklocs(), list(map(escaped, names)))
    _load_new_fonts()
    known = set(fontManager.get_font_names())
    families = [mpl.rcParams["font.sans-serif"][0], *(one for one in _FAMILIES if one in known)]
    for text in figure.findobj(Text):
        text.set_text(escaped(text.get_text()))  # a control character is no glyph
        text.set_fontfamily(families)


def write_png(path: Path, figure: "Figure") -> Path:
    """Writes a figure as PNG; it appears under its name when it is whole.

    The figure is made by `Figure(...)` and not by pyplot: so there is no global state, and no
    window system is looked for. Its texts may be of any script.

    Example:
        >>> import tempfile
        >>> from matplotlib.figure import Figure
        >>> path = write_png(Path(tempfile.mkdtemp()) / "empty.png", Figure(figsize=(1, 1)))
        >>> path.read_bytes()[1:4]
        b'PNG'
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    with warnings.catch_warnings(record=True) as said, open_whole(path, "wb") as file:
        warnings.simplefilter("always")
        _with_fonts(figure)
        figure.savefig(file, dpi=120, format="png")
    if any("missing from font" in str(one.message) for one in said):
        _LOGGER.warning(
            "no font on this machine has some characters, which appear as boxes in %s; install one "
            "(Debian's fonts-noto-cjk and fonts-noto-core have most).",
            path,
        )
    return path
