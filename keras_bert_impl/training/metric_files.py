"""Where a run's figures go: `metrics.jsonl` and TensorBoard."""

import contextlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_bert_impl.files import make_folder, open_whole


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
