"""The learning curve: losses and scores of a run over its steps, beside what guessing reaches."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert_impl.files import open_whole
from keras_bert_impl.json_files import read_json_object, read_log
from keras_bert_impl.pictures import write_png
from keras_bert_impl.training.run_directory import RunDirectory


class Guess(NamedTuple):
    """The value that a figure has without any model.

    Attributes:
        words: how it is guessed, e.g. "always the most frequent class".
        value: what this guessing reaches on the evaluation set.

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

    Args:
        guesses: by the figures' names; those of others are left aside.

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
    with open_whole(run.guesses) as file:
        json.dump({name: guess._asdict() for name, guess in guesses.items()}, file, indent=1)
        file.write("\n")


def read_guesses(run: RunDirectory) -> dict[str, Guess]:
    """Reads `guesses.json`; a run from before there was one has none."""
    if not run.guesses.exists():
        return {}
    kept = read_json_object(run.guesses)
    return {name: Guess(**one) for name, one in kept.items()}


Line = Mapping[str, Any]
Points = list[tuple[int, float]]


@dataclass(frozen=True)
class CurveStyle:
    """Tells what a picture cannot know from the figures alone.

    Attributes:
        scores: figures of the evaluations that are drawn, besides losses; all where none is named.
        full_score: the best that accuracy, F1 and the like can be; 100 of figures in percent.
        trained: the scores among the logged steps' figures, between 0 and 1, that mean the same as
            those of that name among the evaluations'.
    """

    scores: Sequence[str] = ()
    full_score: float = 1.0
    trained: Sequence[str] = ("masked_lm_accuracy", "next_sentence_accuracy", "accuracy")


class Curve(NamedTuple):
    """One figure of a panel.

    Attributes:
        words: what it is called.
        trained: steps and values of the logged steps.
        evaluated: steps and values of the evaluations, by step.
        guess: what guessing reaches.
    """

    words: str
    trained: Points
    evaluated: Points
    guess: Guess | None = None


@dataclass(frozen=True)
class Panel:
    """Figures that share an axis.

    Attributes:
        title: what they are, in plain words.
        unit: of the axis.
        curves: them.
        most: where the axis ends at the latest; None where there is no best value.
    """

    title: str
    unit: str
    curves: list[Curve] = field(default_factory=list)
    most: float | None = None


class _Kind(NamedTuple):
    """A panel to be: its title, its unit, and the figures that belong there if a run has them."""

    title: str
    unit: str
    names: Sequence[str]
    is_share: bool = False


_NATS = "nats; lower is better"
_RIGHT = "share of right answers"
_PRETRAINING = (
    _Kind("Masked words: loss", _NATS, ["masked_lm_loss"]),
    _Kind("Next sentence: loss", _NATS, ["next_sentence_loss"]),
    _Kind("Masked words: accuracy", _RIGHT, ["masked_lm_accuracy"], is_share=True),
    _Kind("Next sentence: accuracy", _RIGHT, ["next_sentence_accuracy"], is_share=True),
)
_LOSS = _Kind("Loss", _NATS, ["loss"])
_SQUARED_ERROR = _Kind("Loss: mean squared error", "squared label units; lower is better", ["loss"])
_ACCURACY = _Kind("Accuracy", _RIGHT, ["accuracy"], is_share=True)
_CORRELATION = _Kind(
    "Correlation",
    "1 is perfect, 0 is no better than chance",
    ["pearson", "spearman", "matthews_correlation"],
)
_ABSOLUTE_ERROR = _Kind(
    "Mean absolute error", "label units; lower is better", ["mean_absolute_error"]
)
_SQUARED = "mean_squared_error"  # the loss of a regression once more
_FOOTNOTE = {
    "trained": "training: the batches that the model learns from",
    "evaluated": "evaluation: on held-out examples after so many steps",
    "guess": "dotted: what guessing reaches on the evaluation set",
}


def draw_learning_curve(run: RunDirectory, style: CurveStyle | None = None) -> Path | None:
    """Draws the losses and scores of `metrics.jsonl` and `evaluations.jsonl`.

    Args:
        run: the run's folder; `learning_curve.png` is written there.

    Returns:
        The picture's path, or None where nothing was logged.
    """
    lines, evaluations = read_log(run.metrics), read_log(run.evaluations)
    panels = panels_of(lines, evaluations, read_guesses(run), style or CurveStyle())
    return write_png(run.learning_curve, draw_panels(panels)) if lines and panels else None


def panels_of(
    lines: Sequence[Line],
    evaluations: Sequence[Line],
    guesses: Mapping[str, Guess],
    style: CurveStyle,
) -> list[Panel]:
    """Sorts the figures of a run into panels; those without any finite value are left out.

    Example:
        >>> lines, evaluations = [{"step": 1, "loss": 2.0}], [{"step": 1, "f1": 50.0}]
        >>> [panel.title for panel in panels_of(lines, evaluations, {}, CurveStyle())]
        ['Loss', 'F1']
    """
    panels = []
    for kind in _kinds(lines, evaluations, style):
        curves = (_curve(name, kind, lines, evaluations, guesses, style) for name in kind.names)
        drawn = [curve for curve in curves if curve.trained or curve.evaluated]
        percent = kind.is_share and style.full_score != 1.0
        unit = f"{kind.unit} (%)" if percent else kind.unit
        if drawn:
            most = style.full_score if kind.is_share else None
            panels.append(Panel(kind.title, unit, drawn, most))
    return panels


def _kinds(
    lines: Sequence[Line], evaluations: Sequence[Line], style: CurveStyle
) -> Iterable[_Kind]:
    """The panels that a run's figures may fill."""
    if any("masked_lm_loss" in line for line in lines):
        # Where the loss is that of the masked words alone, the other head does not learn.
        both = any(line.get("loss") != line.get("masked_lm_loss") for line in lines)
        return [kind for kind in _PRETRAINING if both or kind.title.startswith("Masked")]
    return _kinds_of_task(lines, evaluations, style)


def _kinds_of_task(
    lines: Sequence[Line], evaluations: Sequence[Line], style: CurveStyle
) -> Iterator[_Kind]:
    yield _SQUARED_ERROR if any(_SQUARED in line for line in lines) else _LOSS
    found = [name for line in evaluations for name, value in line.items() if _is_figure(value)]
    scores = [name for name in style.scores or dict.fromkeys(found) if name in found]
    apart = {"step", "loss", _SQUARED}
    for kind in (_ACCURACY, _CORRELATION, _ABSOLUTE_ERROR):
        apart.update(kind.names)
        drawn = [name for name in kind.names if name in scores]
        if kind is _ACCURACY:
            drawn = drawn or [name for name in kind.names if name in style.trained]
        title = f"{kind.title}: {_listed(drawn)}" if kind is _CORRELATION else kind.title
        yield kind._replace(title=title, names=drawn)
    rest = [name for name in scores if name not in apart]
    title = _listed(rest)
    yield _Kind(f"{title[:1].upper()}{title[1:]}", "higher is better", rest, is_share=True)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(_words, names))


def _curve(
    name: str,
    kind: _Kind,
    lines: Sequence[Line],
    evaluations: Sequence[Line],
    guesses: Mapping[str, Guess],
    style: CurveStyle,
) -> Curve:
    """The points of one figure; training's shares are given in the unit of the evaluations'."""
    unit = style.full_score if kind.is_share else 1.0
    is_trained = not kind.is_share or name in style.trained
    trained = [(step, value * unit) for step, value in _points(lines, name) if is_trained]
    evaluated = _points(evaluations, name)
    guess = guesses.get(name)
    drawn = guess if guess and math.isfinite(guess.value) else None
    return Curve(_words(name), trained, sorted(dict(evaluated).items()), drawn)


def _points(lines: Iterable[Line], name: str) -> Points:
    """The steps and values of a figure, of the lines that have it as a finite number."""
    found: Iterator[tuple[int, Any]] = ((line["step"], line.get(name)) for line in lines)
    return [(step, value) for step, value in found if _is_figure(value) and math.isfinite(value)]


def _is_figure(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _words(name: str) -> str:
    """The name of a figure in plain words.

    Example:
        >>> _words("macro_f1"), _words("pearson"), _words("matthews_correlation")
        ('macro F1', 'Pearson', 'Matthews')
    """
    if name in _CORRELATION.names:
        return name.removesuffix("_correlation").capitalize()
    return "exact match" if name == "exact" else name.replace("_", " ").replace("f1", "F1")


def draw_panels(panels: Sequence[Panel]) -> Any:
    """Draws panels above one another, or four of them as a square.

    Returns:
        A figure of Matplotlib.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    columns = 2 if len(panels) == 4 else 1
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(7.5 * columns, 0.5 + 3.4 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
    curves = [curve for panel in panels for curve in panel.curves]
    last_step = max(step for c in curves for step, _ in (*c.trained, *c.evaluated))
    for axes, panel in zip(grid.flat, panels, strict=True):
        axes.set_xlim(0, 1.02 * last_step)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        axes.xaxis.set_major_formatter("{x:,.0f}")
        _draw_panel(axes, panel)
    for axes in grid[-1]:
        axes.set_xlabel("training step")
    notes = [note for kind, note in _FOOTNOTE.items() if any(map(attrgetter(kind), curves))]
    figure.supxlabel(("; " if columns == 2 else "\n").join(notes), fontsize=8)
    return figure


def _draw_panel(axes: Any, panel: Panel) -> None:
    axes.set_title(panel.title, loc="left", fontweight="bold")
    axes.set_ylabel(panel.unit)
    axes.set_ylim(*_limits(panel))
    for number, curve in enumerate(panel.curves):
        _draw_curve(axes, curve, number, alone=len(panel.curves) == 1)
    _draw_guesses(axes, panel.curves)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=9, framealpha=0.85)


def _draw_curve(axes: Any, curve: Curve, number: int, *, alone: bool) -> None:
    """Draws a figure; where it is alone in its panel, in a colour for each of its lines."""
    training, evaluation = ("C0", "C1") if alone else (f"C{number}",) * 2
    prefix = "" if alone else f"{curve.words}, "
    if curve.trained:
        marker = "." if len(curve.trained) <= _FEW else ""
        look: dict[str, Any] = {"color": training, "lw": 1.2, "alpha": 0.8, "marker": marker}
        axes.plot(*zip(*curve.trained, strict=True), label=f"{prefix}training", **look)
    if curve.evaluated:
        look = {"color": evaluation, "lw": 1.5, "marker": "o", "ms": 5}
        label = f"{prefix}evaluation: {curve.evaluated[-1][1]:.4g}"
        axes.plot(*zip(*curve.evaluated, strict=True), label=label, **look)


def _draw_guesses(axes: Any, curves: Sequence[Curve]) -> None:
    """Draws what guessing reaches in each figure."""
    for number, curve in enumerate(curves):
        if curve.guess:
            label = str(curve.guess) if len(curves) == 1 else f"{curve.words}, {curve.guess}"
            color = "0.35" if len(curves) == 1 else f"C{number}"
            axes.axhline(curve.guess.value, color=color, ls=":", lw=1.8, label=label)


_FEW = 30
"""So few logged steps are drawn as points, too: one alone makes no line."""


def _limits(panel: Panel) -> tuple[float, float]:
    """The axis from 0 (or below) to a little over the highest value; no further than to the best.

    Example:
        >>> _limits(Panel("", "", [Curve("", [(1, 0.95)], [])], most=1.0))
        (0.0, 1.05)
    """
    values = [v for c in panel.curves for _, v in (*c.trained, *c.evaluated)]
    values += [curve.guess.value for curve in panel.curves if curve.guess]
    low, high = min(0.0, *values, 0.0), max(*values, 0.0)
    most = math.inf if panel.most is None else 1.05 * panel.most
    return 1.15 * low, min(most, 1.15 * high) if high > 0 else panel.most or 1.0
