"""The scores of several runs: mean and deviation, Welch's interval, a table.

Two sets of scores differ if Welch's interval of the difference of their means, at 95 %, leaves out
0 (Welch 1947, "The generalization of Student's problem when several different population variances
are involved"). No correction is made for the number of pairs.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert_impl.files import open_whole
from keras_bert_impl.json_files import json_text, without_nan


class Spread(NamedTuple):
    """A figure over several runs; `sigma` is the deviation of one run (n - 1), NaN of one run."""

    runs: int
    mean: float
    sigma: float
    median: float
    minimum: float
    maximum: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        """The spread of some values; NaN counts as 0."""
        known = [number(value) for value in values]
        sigma = statistics.stdev(known) if len(known) > 1 else math.nan
        middle = statistics.median(known)
        return cls(len(known), statistics.fmean(known), sigma, middle, min(known), max(known))

    def __str__(self) -> str:
        return f"{self.mean:.4f}" + ("" if math.isnan(self.sigma) else f" ± {self.sigma:.4f}")


def number(value: float) -> float:
    """The value, or 0 for NaN: a model whose answers are all alike has no correlation."""
    return 0.0 if math.isnan(value) else value


def welch_interval(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the mean of `first` minus that of `second`, two scores each at least."""
    from scipy import stats

    if len({*first}) == len({*second}) == 1:  # SciPy's interval is NaN then
        return first[0] - second[0], first[0] - second[0]
    found = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    return float(found.low), float(found.high)


def differs_significantly(first: Sequence[float], second: Sequence[float]) -> bool:
    """Whether Welch's interval leaves out 0; of a single score it is unknown: no."""
    if min(len(first), len(second)) < 2:
        return False
    low, high = welch_interval(first, second)
    return not low <= 0.0 <= high


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    r"""A table whose columns are aligned, so that a terminal shows it as well.

    Example:
        >>> print(*markdown_table(["n", "score"], [["10", "0.5"]]), sep="\n")
        | n  | score |
        |----|-------|
        | 10 | 0.5   |
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        return f"| {' | '.join(padded)} |"

    rule = f"|{'|'.join('-' * (width + 2) for width in widths)}|"
    return [line(header), rule, *map(line, rows)]


def write_report(markdown: Path, lines: Iterable[str], json_file: Path, values: Any) -> list[Path]:
    """Writes a report as Markdown and as JSON (NaN is null); gives the two paths."""
    texts = {markdown: "\n".join(lines), json_file: json_text(without_nan(values), indent=1)}
    for path, text in texts.items():
        with open_whole(path) as file:
            file.write(f"{text}\n")
    return [*texts]
