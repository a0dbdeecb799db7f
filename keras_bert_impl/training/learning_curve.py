"""The learning curve: losses and scores of a run over its steps, beside what guessing reaches."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from keras_bert_impl.files import open_whole
from keras_bert_impl.json_files import json_text, read_json_object, read_log
from keras_bert_impl.pictures import write_png
from keras_bert_impl.training.run_directory import RunDirectory


class Guess(NamedTuple):
    """The value that a figure has without any model, and how it is guessed.

    Example:
        >>> str(Guess("always the most frequent class", 0.5507))
        'always the most frequent class: 0.5507'
    """

    words: str
    value: float

    def __str__(self) -> str:
        return f"{self.words}: {self.value:.6g}"


def line_of(name: str, value: float, guesses: Mapping[str, Guess]) -> str:
    """Formats a figure as it is printed, with what guessing reaches.

    Example:
        >>> line_of("eval_accuracy", 0.84, {"eval_accuracy": Guess("always yes", 0.55)})
        'eval_accuracy = 0.84  (always yes: 0.55)'
        >>> line_of("global_step", 7, {})
        'global_step = 7'
    """
    return f"{name} = {value}" + (f"  ({guesses[name]})" if name in guesses else "")


def write_guesses(run: RunDirectory, guesses: Mapping[str, Guess]) -> None:
    """Writes `guesses.json`, by the names that the figures have in `evaluations.jsonl`.

    The file stands beside `eval_results.txt`, which has the original's names.

    Example:
        >>> import tempfile
        >>> run = RunDirectory.open(tempfile.mkdtemp())
        >>> write_guesses(run, {"accuracy": Guess("always yes", 0.55)})
        >>> read_guesses(run)
        {'accuracy': Guess(words='always yes', value=0.55)}
    """
    found = guesses.items()
    values = {name: guess._asdict() for name, guess in found if math.isfinite(guess.value)}
    with open_whole(run.guesses) as file:
        file.write(json_text(values, indent=1) + "\n")


def read_guesses(run: RunDirectory) -> dict[str, Guess]:
    """Reads `guesses.json`; a run from before there was one has none."""
    if not run.guesses.exists():
        return {}
    return {name: Guess(**one) for name, one in read_json_object(run.guesses).items()}


Line = Mapping[str, Any]
Points = list[tuple[int, float]]


@dataclass(frozen=True)
class CurveStyle:
    """Tells what a picture cannot know from the figures alone.

    The `trained` scores of logged steps, between 0 and 1, mean the same as the evaluations' ones.
    """

    scores: Sequence[str] = ()  # of the evaluations that are drawn, besides losses; () is all
    full_score: float = 1.0  # 100 of figures in percent
    trained: Sequence[str] = ("masked_lm_accuracy", "next_sentence_accuracy", "accuracy")


@dataclass(frozen=True)
class Panel:
    """One figure over the steps: of those that were logged, and of the evaluations."""

    title: str
    unit: str
    trained: Points
    evaluated: Points
    guess: Guess | None = None
    most: float | None = None  # where the axis ends at the latest: the best value


_NATS, _RIGHT = "nats; lower is better", "share of right answers"
_CORRELATION, _SHARE = "1 is perfect, 0 is no better than chance", "higher is better"
_FIGURES = {
    "masked_lm_loss": ("Masked words: loss", _NATS),
    "next_sentence_loss": ("Next sentence: loss", _NATS),
    "masked_lm_accuracy": ("Masked words: accuracy", _RIGHT),
    "next_sentence_accuracy": ("Next sentence: accuracy", _RIGHT),
    "loss": ("Loss", _NATS),
    "accuracy": ("Accuracy", _RIGHT),
    "pearson": ("Pearson", _CORRELATION),
    "spearman": ("Spearman", _CORRELATION),
    "matthews_correlation": ("Matthews", _CORRELATION),
    "mean_absolute_error": ("Mean absolute error", "label units; lower is better"),
    "exact": ("Exact match", _SHARE),
}
"""Titles and units; others are shares, called as they are."""
_PRETRAINING = tuple(_FIGURES)[:4]
_SQUARED = "mean_squared_error"  # the loss of a regression once more
_FOOTNOTE = {
    "trained": "training: the batches that the model learns from",
    "evaluated": "evaluation: on held-out examples after so many steps",
    "guess": "dotted: what guessing reaches on the evaluation set",
}


def draw_learning_curve(run: RunDirectory, style: CurveStyle | None = None) -> Path | None:
    """Draws the losses and scores of a run into its `learning_curve.png`, if any were logged."""
    lines, evaluations = read_log(run.metrics), read_log(run.evaluations)
    panels = panels_of(lines, evaluations, read_guesses(run), style or CurveStyle())
    return write_png(run.learning_curve, draw_panels(panels)) if lines and panels else None


def panels_of(
    lines: Sequence[Line],
    evaluations: Sequence[Line],
    guesses: Mapping[str, Guess],
    style: CurveStyle,
) -> list[Panel]:
    """The figures of a run, a panel each; those without any finite value are left out.

    Example:
        >>> lines, evaluations = [{"step": 1, "loss": 2.0}], [{"step": 1, "f1": 50.0}]
        >>> [panel.title for panel in panels_of(lines, evaluations, {}, CurveStyle())]
        ['Loss', 'F1']
    """
    names = _drawn(lines, evaluations, style)
    panels = [_panel(name, lines, evaluations, guesses.get(name), style) for name in names]
    return [panel for panel in panels if panel.trained or panel.evaluated]


def _drawn(lines: Sequence[Line], evaluations: Sequence[Line], style: CurveStyle) -> list[str]:
    """The names of the figures that are drawn if a run has them."""
    if any("masked_lm_loss" in line for line in lines):
        # Where the loss is that of the masked words alone, the other head does not learn.
        both = any(line.get("loss") != line.get("masked_lm_loss") for line in lines)
        return [name for name in _PRETRAINING if both or name.startswith("masked")]
    found = [name for line in evaluations for name, value in line.items() if _is_figure(value)]
    named = style.scores or dict.fromkeys(found)
    scores = [name for name in named if name in found and name not in ("step", "loss", _SQUARED)]
    measured = [name for name in style.trained if name == "accuracy" and name not in scores]
    return ["loss", *measured, *scores]


def _panel(
    name: str,
    lines: Sequence[Line],
    evaluations: Sequence[Line],
    guess: Guess | None,
    style: CurveStyle,
) -> Panel:
    """The points of one figure; training's shares are given in the unit of the evaluations'."""
    words = name.replace("_", " ").replace("f1", "F1")
    title, unit = _FIGURES.get(name, (words[:1].upper() + words[1:], _SHARE))
    if name == "loss" and any(_SQUARED in line for line in lines):
        title, unit = "Loss: mean squared error", "squared label units; lower is better"
    is_share = unit in (_RIGHT, _SHARE)
    full = style.full_score if is_share else 1.0
    is_trained = not is_share or name in style.trained
    return Panel(
        title,
        f"{unit} (%)" if full != 1.0 else unit,
        [(step, value * full) for step, value in _points(lines, name) if is_trained],
        sorted(dict(_points(evaluations, name)).items()),
        guess if guess and math.isfinite(guess.value) else None,
        full if is_share else None,
    )


def _points(lines: Iterable[Line], name: str) -> Points:
    """The steps and values of a figure, of the lines that have it as a finite number."""
    found = ((line["step"], line.get(name)) for line in lines)
    return [(step, value) for step, value in found if _is_figure(value) and math.isfinite(value)]


def _is_figure(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def draw_panels(panels: Sequence[Panel]) -> Any:
    """A figure of Matplotlib with panels above one another, or four of them as a square."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    columns = 2 if len(panels) == 4 else 1
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(7.5 * columns, 0.5 + 3.4 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
    last_step = max(step for one in panels for step, _ in (*one.trained, *one.evaluated))
    for axes, panel in zip(grid.flat, panels, strict=True):
        axes.set_xlim(0, 1.02 * last_step)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        axes.xaxis.set_major_formatter("{x:,.0f}")
        _draw_panel(axes, panel)
    for axes in grid[-1]:
        axes.set_xlabel("training step")
    notes = [note for kind, note in _FOOTNOTE.items() if any(map(attrgetter(kind), panels))]
    figure.supxlabel(("; " if columns == 2 else "\n").join(notes), fontsize=8)
    return figure


def _draw_panel(axes: Any, panel: Panel) -> None:
    axes.set_title(panel.title, loc="left", fontweight="bold")
    axes.set_ylabel(panel.unit)
    axes.set_ylim(*_limits(panel))
    if panel.trained:
        marker = "." if len(panel.trained) <= _FEW else ""
        look: dict[str, Any] = {"color": "C0", "lw": 1.2, "alpha": 0.8, "marker": marker}
        axes.plot(*zip(*panel.trained, strict=True), label="training", **look)
    if panel.evaluated:
        look = {"color": "C1", "lw": 1.5, "marker": "o", "ms": 5}
        label = f"evaluation: {panel.evaluated[-1][1]:.4g}"
        axes.plot(*zip(*panel.evaluated, strict=True), label=label, **look)
    if panel.guess:
        look = {"color": "0.35", "lw": 1.8, "ls": ":"}
        axes.axhline(panel.guess.value, label=str(panel.guess), **look)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=9, framealpha=0.85)


_FEW = 30
"""So few logged steps are drawn as points, too: one alone makes no line."""


def _limits(panel: Panel) -> tuple[float, float]:
    """The axis from 0 (or below) to a little over the highest value; no further than to the best.

    Example:
        >>> _limits(Panel("", "", [(1, 0.95)], [], most=1.0))
        (0.0, 1.05)
    """
    values = [value for _, value in (*panel.trained, *panel.evaluated)]
    values += [panel.guess.value] if panel.guess else []
    low, high = min(0.0, *values, 0.0), max(*values, 0.0)
    most = math.inf if panel.most is None else 1.05 * panel.most
    return 1.15 * low, min(most, 1.15 * high) if high > 0 else panel.most or 1.0
