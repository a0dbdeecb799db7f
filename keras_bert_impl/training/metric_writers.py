"""The figures of a logged step, and where a run's figures go: JSON lines, TensorBoard."""

import contextlib
import math
from collections.abc import Iterator, Mapping
from typing import IO, Any

import tensorflow as tf

from keras_bert_impl.errors import UserError, reason_of
from keras_bert_impl.files import make_folder, open_whole
from keras_bert_impl.json_files import json_text, read_log, without_nan
from keras_bert_impl.training.run_directory import RunDirectory
from keras_bert_impl.training.step import Chunk


class MetricWriter:
    r"""Writes a run's figures as JSON lines, and as events that TensorBoard need not read.

    Example:
        >>> import tempfile
        >>> run = RunDirectory.open(tempfile.mkdtemp())
        >>> _ = run.metrics.write_text('{"step": 1}\n{"step": 2}\n')
        >>> writer = MetricWriter(run)
        >>> with writer.open(first_step=1):  # what comes later will be written again
        ...     writer.write("train", 3, {"loss": 0.5})
        >>> run.metrics.read_text()
        '{"step": 1}\n{"step": 3, "loss": 0.5}\n'
    """

    def __init__(self, directory: RunDirectory, writes: bool = True) -> None:
        self._directory, self._writes = directory, writes
        self._paths = {"train": directory.metrics, "eval": directory.evaluations}
        self._files: dict[str, IO[str]] = {}
        plugin = tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars")
        self._metadata = tf.compat.v1.SummaryMetadata(plugin_data=plugin)

    @contextlib.contextmanager
    def open(self, first_step: float) -> Iterator[None]:
        """Inside the block figures can be written; those of steps after `first_step` are dropped.

        A run that resumes does these steps again.
        """
        if not self._writes:
            yield
            return
        for kind, path in self._paths.items():
            kept = [line for line in read_log(path) if line["step"] <= first_step]
            with open_whole(path) as file:
                file.writelines(json_text(without_nan(line)) + "\n" for line in kept)
            self._files[kind] = path.open("a", encoding="utf-8")
        self._events = tf.summary.create_file_writer(str(make_folder(self._directory.events)))
        try:
            yield
        finally:
            # On a full disk: what could be written is written.
            for file in (*self._files.values(), self._events):
                with contextlib.suppress(OSError, tf.errors.OpError):
                    file.close()

    def write(self, kind: str, step: int, figures: Mapping[str, Any]) -> None:
        """Writes figures ("train" or "eval", with texts, too); they are there when this returns."""
        if not self._writes:
            return
        try:
            self._files[kind].write(json_text(without_nan({"step": step, **figures})) + "\n")
            self._files[kind].flush()
            self._write_events(kind, step, figures)
        except (OSError, tf.errors.OpError) as error:
            raise UserError(
                f"{self._directory.path}: the run's figures cannot be written "
                f"({reason_of(error)}); free some space and start the same command again: it "
                "resumes from the newest checkpoint."
            ) from error

    def _write_events(self, kind: str, step: int, figures: Mapping[str, Any]) -> None:
        with self._events.as_default(step=step):
            for name, value in figures.items():
                if not isinstance(value, str):
                    # `tf.summary.scalar` does the same, but only where TensorBoard is installed.
                    number = tf.constant(value, tf.float32)
                    tf.summary.write(f"{kind}/{name}", number, metadata=self._metadata)
        self._events.flush()


def add_evaluation(directory: RunDirectory, step: int, figures: Mapping[str, Any]) -> None:
    """Adds the figures of the finished model to those of the evaluations during training.

    An evaluation of that step on the same data is there already where it was made during training.
    """
    held_out = figures.get("held_out")
    lines = read_log(directory.evaluations)
    if any(line["step"] == step and line.get("held_out", held_out) == held_out for line in lines):
        return
    writer = MetricWriter(directory)
    with writer.open(math.inf):
        writer.write("eval", step, figures)


class Rates:
    """Counts steps and what they take; gives rates since the last reading.

    The steps of one compiled call share its time. The first call is spent on compiling: its time
    enters the lines of its own steps only.
    """

    def __init__(self, now: float) -> None:
        self._since, self._calls = now, 0
        self._clear()

    def _clear(self) -> None:
        self._seconds, self._examples, self._tokens = 0.0, 0, 0

    def count(self, step: int, chunk: Chunk, now: float) -> None:
        """Counts a step whose figures are there."""
        if step == chunk.first_step + 1:
            self._seconds_a_step = (now - self._since) / len(chunk.learning_rates)
            self._since = now
            self._calls += 1
            if self._calls == 2:
                self._clear()
        self._examples += chunk.examples
        self._tokens += chunk.tokens
        self._seconds += self._seconds_a_step

    def read(self) -> dict[str, float]:
        """The rates of the steps since the last reading."""
        seconds = max(self._seconds, 1e-9)
        rates = {"examples_per_second": round(self._examples / seconds, 2)}
        if self._tokens:
            rates["tokens_per_second"] = round(self._tokens / seconds, 1)
        self._clear()
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
