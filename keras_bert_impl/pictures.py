"""Pictures: figures of Matplotlib, written whole."""

from pathlib import Path
from typing import TYPE_CHECKING

from keras_bert_impl.files import open_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
