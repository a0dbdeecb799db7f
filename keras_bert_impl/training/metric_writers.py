"""Where a run's figures go: `metrics.jsonl`, TensorBoard and the learning curve."""

import contextlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_bert_impl.files import make_folder, open_whole
from keras_bert_impl.training.run_directory import RunDirectory


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    r"""Reads a file of JSON objects, one a line; a half-written last line is left out.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "metrics.jsonl"
        >>> _ = path.write_text('{"step": 1}\n{"step": 2, "lo')
        >>> read_json_lines(path)
        [{'step': 1}]
    """
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines[:-1] if line]


class JsonLines:
    r"""Appends one JSON object a step, and forgets what a resumed run will write again.

    Args:
        path: the file.
        first_step: the step the run resumes from; lines of later steps are dropped.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "metrics.jsonl"
        >>> _ = path.write_text('{"step": 1}\n{"step": 2}\n')
        >>> with JsonLines(path, first_step=1) as lines:
        ...     lines.write({"step": 3})
        >>> path.read_text()
        '{"step": 1}\n{"step": 3}\n'
    """

    def __init__(self, path: Path, first_step: int) -> None:
        kept = [line for line in read_json_lines(path) if line["step"] <= first_step]
        with open_whole(path) as file:
            file.writelines(json.dumps(line) + "\n" for line in kept)
        self._file = path.open("a", encoding="utf-8")

    def __enter__(self) -> "JsonLines":
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # a full disk: what could be written is written
            self._file.close()

    def write(self, line: Mapping[str, Any]) -> None:
        """Appends one line; it is in the file when this returns."""
        self._file.write(json.dumps(dict(line)) + "\n")
        self._file.flush()


class TensorBoard:
    """Writes scalars for TensorBoard, without needing it to be installed.

    A run that resumes opens another event file, whose first event tells TensorBoard to forget
    what a killed process had written for later steps.

    Args:
        folder: where the event files go.
        first_step: the step the run resumes from.
    """

    def __init__(self, folder: Path, first_step: int) -> None:
        make_folder(folder)
        name = f"events.out.tfevents.{int(time.time()):010d}.{os.getpid()}.{first_step}"
        self._file = tf.io.TFRecordWriter(str(folder / name))
        self._write(file_version="brain.Event:2")
        restart = tf.compat.v1.SessionLog(status=tf.compat.v1.SessionLog.START)
        self._write(step=first_step + 1, session_log=restart)

    def __enter__(self) -> "TensorBoard":
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(tf.errors.OpError):
            self._file.close()

    def write(self, step: int, scalars: Mapping[str, float], prefix: str = "train") -> None:
        """Writes the scalars of one step under `prefix/`."""
        value = tf.compat.v1.Summary.Value
        summary = tf.compat.v1.Summary(
            value=[value(tag=f"{prefix}/{name}", simple_value=scalars[name]) for name in scalars]
        )
        self._write(step=step, summary=summary)
        self._file.flush()

    def _write(self, **event: Any) -> None:
        event_message = tf.compat.v1.Event(wall_time=time.time(), **event)
        self._file.write(event_message.SerializeToString())


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
