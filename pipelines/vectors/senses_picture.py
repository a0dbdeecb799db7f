"""The picture of how alike the uses of a word are."""

import textwrap
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.files import make_folder
from keras_bert_impl.pictures import families_for, write_png

_WIDEST = 56  # characters of a line of a label
_INCHES_A_CHARACTER = 0.095
_DARK = 0.55  # share of the colours, from below, on which numbers are white


def draw_senses(
    path: Path, labels: Sequence[str], cosines: NDArray[np.float64], title: str
) -> None:
    """Draws the cosines of every two uses, in colours from the lowest to the highest of them.

    That a use is like itself says nothing: the diagonal has no colour.

    Args:
        path: the PNG file.
        labels: a name for each use.
        cosines: [uses, uses].
        title: stands above.
    """
    from matplotlib.figure import Figure

    lines = [textwrap.wrap(label, _WIDEST) for label in labels]
    widest = max(_width(line) for label in lines for line in label)
    count, tallest = len(labels), max(map(len, lines))
    cell = 0.85 if count <= 12 else 0.6
    low, high = _bounds(cosines)
    with families_for("".join([title, *labels])):
        figure = Figure(
            figsize=(
                max(6.5, 2.0 + widest * _INCHES_A_CHARACTER + cell * count),
                1.6 + max(cell, 0.2 * tallest) * count,
            ),
            layout="constrained",
        )
        axes = figure.add_subplot()
        others = np.ma.masked_array(cosines, np.eye(count, dtype=bool))
        image = axes.imshow(others, vmin=low, vmax=high, cmap="viridis")
        axes.set_facecolor("lightgrey")
        figure.colorbar(image, label="cosine")
        axes.set_xticks(range(count), [str(number) for number in range(1, count + 1)])
        axes.set_yticks(range(count), ["\n".join(label) for label in lines])
        axes.set_xlabel("use")
        for row in range(count):
            for column in range(count):
                dark = row != column and (cosines[row, column] - low) < _DARK * (high - low)
                axes.text(
                    column,
                    row,
                    "" if row == column else f"{cosines[row, column]:.2f}",
                    ha="center",
                    va="center",
                    color="white" if dark else "black",
                )
        figure.suptitle("\n".join(textwrap.wrap(title, 60)))
        make_folder(path.parent)
        write_png(path, figure, dpi=100)


def _width(text: str) -> int:
    """The columns that a text takes; Hangul and other wide characters take two each.

    Example:
        >>> _width("a 배")
        4
    """
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)


def _bounds(cosines: NDArray[np.float64]) -> tuple[float, float]:
    """The lowest and the highest cosine of two uses, at least two hundredths apart.

    Example:
        >>> _bounds(np.array([[1.0, 0.5], [0.5, 1.0]]))
        (0.49, 0.51)
    """
    others = cosines[~np.eye(len(cosines), dtype=bool)]
    low, high = float(others.min()), float(others.max())
    spare = max(0.0, 0.02 - (high - low)) / 2
    return low - spare, high + spare
