"""The figures of a logged step, and where a run's figures go: JSON lines, TensorBoard."""

import contextlib
import dataclasses
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

import tensorflow as tf

from keras_bert_impl.errors import UserError, reason_of
from keras_bert_impl.files import make_folder, open_whole
from keras_bert_impl.json_files import read_log
from keras_bert_impl.training.run_directory import RunDirectory
from keras_bert_impl.training.step import Chunk


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


class JsonLinesFiles:
    r"""Appends one JSON object a line to `metrics.jsonl`, `evaluations.jsonl` and `saves.jsonl`.

    Example:
        >>> import tempfile
        >>> run = RunDirectory.open(tempfile.mkdtemp())
        >>> _ = run.metrics.write_text('{"step": 1}\n{"step": 2}\n')
        >>> files = JsonLinesFiles(run)
        >>> files.open(first_step=1)  # what comes later will be written again
        >>> files.write("train", 3, {"loss": 0.5})
        >>> run.metrics.read_text()
        '{"step": 1}\n{"step": 3, "loss": 0.5}\n'
    """

    def __init__(
        self, directory: RunDirectory, kinds: Sequence[str] = ("train", "eval", "save")
    ) -> None:
        paths = {
            "train": directory.metrics,
            "eval": directory.evaluations,
            "save": directory.saves,
        }
        self._paths = {kind: paths[kind] for kind in kinds}
        self._files: dict[str, IO[str]] = {}

    def open(self, first_step: int) -> None:
        """Opens the files; see `MetricWriter.open`."""
        for kind, path in self._paths.items():
            kept = [line for line in read_log(path) if line["step"] <= first_step]
            with open_whole(path) as file:
                file.writelines(json.dumps(line) + "\n" for line in kept)
            self._files[kind] = path.open("a", encoding="utf-8")

    def write(self, kind: str, step: int, figures: Mapping[str, Any]) -> None:
        """Appends one line to the file of its kind; it is there when this returns."""
        self._files[kind].write(json.dumps({"step": step, **figures}) + "\n")
        self._files[kind].flush()

    def close(self) -> None:
        """Closes the files."""
        for file in self._files.values():
            with contextlib.suppress(OSError):  # a full disk: what could be written is written
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


@dataclasses.dataclass
class _Measured:
    """Gives the work done since the last reading."""

    steps: int = 0
    examples: int = 0
    tokens: int = 0
    seconds: float = 0.0
    compiling: bool = False


class Rates:
    """Counts steps and what they take; gives rates since the last reading.

    The steps of one compiled call share its time. The first call is spent on compiling: its time
    enters the lines of its own steps only.
    """

    def __init__(self) -> None:
        self._since, self._seconds_a_step = 0.0, 0.0
        self._calls, self._measured = 0, _Measured()

    def start(self, now: float) -> None:
        """Starts the clock.

        Args:
            now: seconds of any clock.
        """
        self._since = now

    def count(self, step: int, chunk: Chunk, now: float) -> None:
        """Counts a step whose figures are there.

        Args:
            now: seconds of the clock of `start`.
        """
        if step == chunk.first_step + 1:
            self._begin_call(chunk, now)
        measured = self._measured
        measured.steps += 1
        measured.examples += chunk.examples
        measured.tokens += chunk.tokens
        measured.seconds += self._seconds_a_step

    def _begin_call(self, chunk: Chunk, now: float) -> None:
        self._seconds_a_step = (now - self._since) / len(chunk.learning_rates)
        self._since = now
        self._calls += 1
        if self._calls == 1:
            self._measured = _Measured(compiling=True)
        elif self._measured.compiling:
            self._measured = _Measured()

    def read(self) -> dict[str, float]:
        """The rates of the steps since the last reading."""
        measured, self._measured = self._measured, _Measured()
        seconds = max(measured.seconds, 1e-9)
        rates = {"examples_per_second": round(measured.examples / seconds, 2)}
        if measured.tokens:
            rates["tokens_per_second"] = round(measured.tokens / seconds, 1)
        return rates


def log_line(
    metrics: Mapping[str, float], chunk: Chunk, step: int, rates: Mapping[str, float]
) -> dict[str, float]:
    """The figures of a logged step: losses first, then rates, then what else was measured."""
    line = {
        **{name: value for name, value in metrics.items() if name.endswith("loss")},
        "learning_rate": chunk.learning_rates[step - 1 - chunk.first_step],
        "gradient_norm": metrics["gradient_norm"],
        **rates,
    }
    others = {n: v for n, v in metrics.items() if n not in line and not n.endswith("_votes")}
    padding = {"padding_share": round(chunk.padding_share, 4)} if chunk.tokens else {}
    return {**line, **others, **padding}


class Means:
    """Adds up figures step by step; gives their means since the last reading.

    Example:
        >>> means = Means({"loss": [5.0, 2]})
        >>> means.add({"loss": 4.0})
        >>> means.read(), means.read()
        ({'loss': 3.0}, {})
    """

    def __init__(self, sums: dict[str, list[float]]) -> None:
        self._sums = sums

    def add(self, figures: Mapping[str, float]) -> None:
        """Counts the figures of one step."""
        for name, value in figures.items():
            total, count = self._sums.get(name, (0.0, 0))
            self._sums[name] = [total + value, count + 1]

    def read(self) -> dict[str, float]:
        """The means, which start anew."""
        means = {name: total / count for name, (total, count) in self._sums.items()}
        self._sums.clear()
        return means
