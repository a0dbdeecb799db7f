"""Pictures: figures of Matplotlib, written whole, with fonts for text in any script."""

import functools
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_bert_impl.errors import escaped
from keras_bert_impl.files import open_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOGGER = logging.getLogger(__name__)

_SHOWN = 5  # characters without a font that a warning shows


def _with_fonts(figure: "Figure") -> None:
    """Gives every text of a figure the fonts that its script needs.

    Matplotlib's own font has Latin, Greek, Cyrillic, Hebrew and Arabic. For other scripts fonts of
    this machine are found; where there is none, one warning says which package brings it.
    Matplotlib shapes the text: Arabic is joined and runs from right to left.
    """
    from matplotlib.text import Text

    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        names = [label.get_text() for label in axis.get_ticklabels()]
        if any(name != escaped(name) for name in names):  # drawing would write them anew
            axis.set_ticks(axis.get_ticklocs(), list(map(escaped, names)))
    texts = [text for text in figure.findobj(Text) if text.get_text()]
    for text in texts:
        text.set_text(escaped(text.get_text()))  # a control character is no glyph
    families = font_families("".join(text.get_text() for text in texts))
    for text in texts:
        text.set_fontfamily(families)


def font_families(text: str) -> list[str]:
    """The font families of this machine that together have a text's characters.

    Matplotlib's own comes first. Where no font has a character, a warning names Debian's packages.

    Args:
        text: all characters that will be drawn.
    """
    import matplotlib as mpl
    from matplotlib.font_manager import findfont

    own = mpl.rcParams["font.sans-serif"][0]
    drawn = {character for character in text if character.isprintable()}
    lacking = drawn - _characters_of(findfont(own))
    families = [own]
    fonts = _fonts()
    while lacking and (font := next(fonts, None)):
        if found := lacking & _characters_of(font.fname):
            families.append(font.name)
            lacking -= found
    if lacking:
        _LOGGER.warning(
            "no font on this machine has %s, which stand as boxes in the picture; install one "
            "(Debian's fonts-noto-cjk and fonts-noto-core have most).",
            ", ".join(sorted(lacking)[:_SHOWN]),
        )
    return families


def _fonts() -> Iterator[Any]:
    """The fonts that Matplotlib knows of, plain ones first."""
    from matplotlib.font_manager import fontManager

    # "Last Resort" has boxes for all. Of equally plain ones the first by name: Matplotlib's list is
    # in the order of a set, and the same picture must come out each time.
    real = [font for font in fontManager.ttflist if "Last Resort" not in font.name]
    yield from sorted(sorted(real, key=lambda font: font.fname), key=_is_plain, reverse=True)


def _is_plain(font: Any) -> tuple[bool, bool, bool]:
    plain = font.style == "normal" and font.weight == 400
    return plain, "Sans" in font.name, "Mono" not in font.name


@functools.cache
def _characters_of(file: str) -> frozenset[str]:
    from matplotlib.font_manager import get_font

    try:
        return frozenset(map(chr, get_font(file).get_charmap()))
    except (OSError, RuntimeError):  # it was removed after Matplotlib made its list
        return frozenset()


def write_png(path: Path, figure: "Figure", dpi: int = 120) -> Path:
    """Writes a figure as PNG; it appears under its name when it is whole.

    The figure is made by `Figure(...)` and not by pyplot: so there is no global state, and no
    window system is looked for.

    Args:
        figure: what is drawn; its texts may be of any script.
        dpi: pixels per inch of the figure's size.

    Example:
        >>> import tempfile
        >>> from matplotlib.figure import Figure
        >>> path = write_png(Path(tempfile.mkdtemp()) / "empty.png", Figure(figsize=(1, 1)))
        >>> path.read_bytes()[1:4]
        b'PNG'
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    with warnings.catch_warnings(), open_whole(path, "wb") as file:
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        _with_fonts(figure)
        figure.savefig(file, dpi=dpi, format="png")
    return path
