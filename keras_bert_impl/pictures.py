"""Pictures: figures of Matplotlib, written whole, with fonts for their text."""

import contextlib
import functools
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from keras_bert_impl.files import open_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOGGER = logging.getLogger(__name__)


@contextlib.contextmanager
def families_for(text: str) -> Iterator[None]:
    """Inside the block figures are made and written with fonts of this machine that have the text.

    Matplotlib's own font has no Hangul, Chinese or Japanese. Where no font here has them, one
    warning says what to install, in place of one a character by Matplotlib.

    Args:
        text: all characters that will be drawn.
    """
    import matplotlib as mpl
    from matplotlib.font_manager import findfont

    own = mpl.rcParams["font.sans-serif"][0]
    own_characters = _characters_of(findfont(own))
    lacking = {character for character in text if character.isprintable()} - own_characters
    family = _family_with(frozenset(lacking)) if lacking else None
    if lacking and family is None:
        _LOGGER.warning(
            "no font on this machine has %s, which stand as boxes in the picture; install one "
            "(Debian's package fonts-noto-cjk has Chinese, Japanese and Korean).",
            ", ".join(sorted(lacking)[:5]),
        )
    families = [own, family] if family else [own]
    with mpl.rc_context({"font.family": families}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


@functools.cache
def _family_with(characters: frozenset[str]) -> str | None:
    """A font family of this machine that has the characters, a plain one before others."""
    from matplotlib.font_manager import fontManager

    plain = sorted(fontManager.ttflist, key=lambda one: (one.style != "normal", one.weight != 400))
    real = (one for one in plain if "Last Resort" not in one.name)  # which has boxes for all
    return next((one.name for one in real if characters <= _characters_of(one.fname)), None)


@functools.cache
def _characters_of(file: str) -> frozenset[str]:
    from matplotlib.font_manager import get_font

    return frozenset(map(chr, get_font(file).get_charmap()))


def write_png(path: Path, figure: "Figure", dpi: int = 120) -> Path:
    """Writes a figure as PNG; it appears under its name when it is whole.

    The figure is made by `Figure(...)` and not by pyplot: so there is no global state, and no
    window system is looked for.

    Args:
        path: a .png file in a folder that exists.
        figure: what is drawn.
        dpi: pixels per inch of the figure's size.

    Raises:
        UserError: the file cannot be written.

    Example:
        >>> import tempfile
        >>> from matplotlib.figure import Figure
        >>> path = write_png(Path(tempfile.mkdtemp()) / "empty.png", Figure(figsize=(1, 1)))
        >>> path.read_bytes()[1:4]
        b'PNG'
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    with open_whole(path, "wb") as file:
        figure.savefig(file, dpi=dpi, format="png")
    return path
