"""A picture of a run's losses."""

from pathlib import Path

from keras_bert_impl.files import open_whole
from keras_bert_impl.training.metric_files import read_json_lines
from keras_bert_impl.training.run_directory import RunDirectory

_LOSSES = ("loss", "masked_lm_loss", "next_sentence_loss")


def draw_learning_curve(run: RunDirectory) -> Path | None:
    """Draws the losses of `metrics.jsonl` and of the held-out evaluations.

    Args:
        run: the run's folder; `learning_curve.png` is written there.

    Returns:
        The picture's path, or None where nothing was logged.
    """
    lines, evaluations = read_json_lines(run.metrics), read_json_lines(run.evaluations)
    if not lines:
        return None
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # Without pyplot there is no global state, and no window system is looked for.
    figure = Figure(figsize=(8, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for name in (name for name in _LOSSES if name in lines[0]):
        (drawn,) = axes.plot(
            [line["step"] for line in lines],
            [line[name] for line in lines],
            label=name.replace("_", " "),
            linewidth=1,
        )
        held_out = [(line["step"], line[name]) for line in evaluations if name in line]
        if held_out:
            axes.plot(
                *zip(*held_out, strict=True),
                "o--",
                color=drawn.get_color(),
                label=f"{name.replace('_', ' ')}, held out",
            )
    axes.set_xlabel("step")
    axes.set_ylabel("loss (nats)")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    with open_whole(run.learning_curve, "wb") as file:
        figure.savefig(file, dpi=120, format="png")
    return run.learning_curve
