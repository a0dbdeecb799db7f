"""Where a run's figures go: JSON lines, TensorBoard; others are easy to add."""

import contextlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import tensorflow as tf

from keras_bert_impl.errors import UserError, reason_of
from keras_bert_impl.files import make_folder, open_whole
from keras_bert_impl.json_files import read_log
from keras_bert_impl.training.run_directory import RunDirectory


class MetricWriter(Protocol):
    """One place that figures go to: a file, a server, a screen."""

    def open(self, first_step: int) -> None:
        """Called first, with the steps done so far.

        A run that resumes does the later steps again: figures of them are to be forgotten.
        """
        ...

    def write(self, kind: str, step: int, figures: Mapping[str, Any]) -> None:
        """Takes the figures of one step.

        Args:
            kind: "train" (a logged step), "eval" (a held-out evaluation) or "save" (a checkpoint).
            step: the steps done.
            figures: numbers by name; of an evaluation also texts.
        """
        ...

    def close(self) -> None:
        """Called last, whatever ended the run."""
        ...


def standard_writers(directory: RunDirectory) -> list[MetricWriter]:
    """The files that every run writes: JSON lines and TensorBoard's events."""
    return [JsonLinesFiles(directory), TensorBoard(directory.events)]


class MetricWriters:
    """Several writers as one; a full disk is a sentence to the user.

    Args:
        writers: them; none in a worker that only computes.
    """

    def __init__(self, writers: Sequence[MetricWriter], directory: RunDirectory) -> None:
        self._writers, self._directory = list(writers), directory

    @contextlib.contextmanager
    def open(self, first_step: int) -> Iterator[None]:
        """Inside the block figures can be written."""
        with contextlib.ExitStack() as stack:
            for writer in self._writers:
                writer.open(first_step)
                stack.callback(writer.close)
            yield

    def write(self, kind: str, step: int, figures: Mapping[str, Any]) -> None:
        """Hands the figures to every writer; see `MetricWriter.write`."""
        try:
            for writer in self._writers:
                writer.write(kind, step, figures)
        except (OSError, tf.errors.OpError) as error:
            raise UserError(
                f"{self._directory.path}: the run's figures cannot be written "
                f"({reason_of(error)}); free some space and start the same command again: it "
                "resumes from the newest checkpoint."
            ) from error


class JsonLines:
    r"""Appends one JSON object a step, and forgets what a resumed run will write again.

    Args:
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
        kept = [line for line in read_log(path) if line["step"] <= first_step]
        with open_whole(path) as file:
            file.writelines(json.dumps(line) + "\n" for line in kept)
        self._file = path.open("a", encoding="utf-8")

    def __enter__(self) -> "JsonLines":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file."""
        with contextlib.suppress(OSError):  # a full disk: what could be written is written
            self._file.close()

    def write(self, line: Mapping[str, Any]) -> None:
        """Appends one line; it is in the file when this returns."""
        self._file.write(json.dumps(dict(line)) + "\n")
        self._file.flush()


class JsonLinesFiles:
    """Writes `metrics.jsonl`, `evaluations.jsonl` and `saves.jsonl`."""

    def __init__(
        self, directory: RunDirectory, kinds: Sequence[str] = ("train", "eval", "save")
    ) -> None:
        paths = {
            "train": directory.metrics,
            "eval": directory.evaluations,
            "save": directory.saves,
        }
        self._paths = {kind: paths[kind] for kind in kinds}
        self._files: dict[str, JsonLines] = {}

    def open(self, first_step: int) -> None:
        """Opens the files; see `MetricWriter.open`."""
        self._files = {kind: JsonLines(path, first_step) for kind, path in self._paths.items()}

    def write(self, kind: str, step: int, figures: Mapping[str, Any]) -> None:
        """Appends one line to the file of its kind."""
        self._files[kind].write({"step": step, **figures})

    def close(self) -> None:
        """Closes the files."""
        for file in self._files.values():
            file.close()


def add_evaluation(directory: RunDirectory, step: int, figures: Mapping[str, Any]) -> None:
    """Adds the figures of the finished model to those of the evaluations during training.

    An evaluation of that step on the same data is there already where it was made during training.
    """
    held_out = figures.get("held_out")
    lines = read_log(directory.evaluations)
    if any(line["step"] == step and line.get("held_out", held_out) == held_out for line in lines):
        return
    last = max([step, *(line["step"] for line in lines)])
    files = JsonLinesFiles(directory, kinds=("eval",))
    writers = MetricWriters([files, TensorBoard(directory.events)], directory)
    with writers.open(last):
        writers.write("eval", step, figures)


class TensorBoard:
    """Writes `train/loss`, `eval/loss`, ... for TensorBoard, which need not be installed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer = tf.summary.create_noop_writer()
        plugin = tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars")
        self._metadata = tf.compat.v1.SummaryMetadata(plugin_data=plugin)

    def open(self, first_step: int) -> None:
        """Opens a new event file; see `MetricWriter.open`."""
        make_folder(self._folder)
        if any(self._folder.glob("events.out.tfevents.*")):
            self._forget_from(first_step + 1)
        self._writer = tf.summary.create_file_writer(str(self._folder))

    def write(self, kind: str, step: int, figures: Mapping[str, Any]) -> None:
        """Writes the numbers among the figures."""
        with self._writer.as_default(step=step):
            for name, value in figures.items():
                if not isinstance(value, str):
                    # `tf.summary.scalar` does the same, but only where TensorBoard is installed.
                    number = tf.constant(value, tf.float32)
                    tf.summary.write(f"{kind}/{name}", number, metadata=self._metadata)
        self._writer.flush()

    def close(self) -> None:
        """Closes the file."""
        with contextlib.suppress(tf.errors.OpError):  # a full disk: what could be written is
            self._writer.close()

    def _forget_from(self, step: int) -> None:
        """Tells TensorBoard that older files' figures of `step` and later ones do not count.

        It reads the files in the order of their names. The first start that it sees means nothing
        to it, so there are two. `tf.summary` has no way to write one.
        """
        restart = tf.compat.v1.SessionLog(status=tf.compat.v1.SessionLog.START)
        mark = tf.compat.v1.Event(wall_time=time.time(), step=step, session_log=restart)
        version = tf.compat.v1.Event(wall_time=time.time(), file_version="brain.Event:2")
        name = f"events.out.tfevents.{int(time.time()):010d}.-restart"  # "-": before the new file
        with tf.io.TFRecordWriter(str(self._folder / name)) as file:
            for event in (version, mark, mark):
                file.write(event.SerializeToString())
