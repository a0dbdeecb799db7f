r"""Times create_pretraining_data from sentence text to finished shards, the original beside it.

  python -m tools.benchmarks.pretraining_data --input_file=corpus.txt --vocab_file=vocab.txt \
      --original=PATH/TO/google-research-bert --original_bytes=5000000

Each run is a fresh process (start-up included). The peak memory is that of all processes together
(each with an equal part of what they share). The original runs unmodified under TensorFlow 2's
compat.v1 on the first `original_bytes` of the text, whole documents. Prints a table and one line of
JSON. Processor seconds leave out workers that are forked (more than one worker).
"""

import dataclasses
import json
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from tools import command_line

FLAGS = command_line.FlagSet(__doc__)
_INPUT_FILE = FLAGS.string("input_file", None, "Documents, one sentence a line.", required=True)
_VOCAB_FILE = FLAGS.string("vocab_file", None, "The vocabulary.", required=True)
_ORIGINAL = FLAGS.string(
    "original", None, "Folder with google-research/bert, to time it on the same text."
)
_ORIGINAL_BYTES = FLAGS.integer(
    "original_bytes", 5_000_000, "How much of the text the original gets; its cost is linear."
)
_WORKERS = FLAGS.words("workers", ["1", "2"], "Numbers of workers to try.")
_LENGTHS = FLAGS.words("lengths", ["128"], "Lengths to try.")
_WHOLE_WORDS = FLAGS.switch("whole_words", True, "Time whole-word masking too (one worker).")
_DUPE_FACTOR = FLAGS.integer("dupe_factor", 10, "Copies of every document.")

_SHIM = """
import sys, types
import tensorflow as tf2
tf = tf2.compat.v1
tf.python_io = types.SimpleNamespace(TFRecordWriter=tf2.io.TFRecordWriter)
tf.gfile.GFile, tf.gfile.Glob = tf2.io.gfile.GFile, tf2.io.gfile.glob
sys.modules["tensorflow"] = tf
sys.path.insert(0, sys.argv.pop(1))
import create_pretraining_data
tf.app.run(create_pretraining_data.main)
"""


def _tree(root: int) -> list[int]:
    """A process and all that it started."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue  # it ended in the meantime
        children.setdefault(int(text.rsplit(")", 1)[1].split()[1]), []).append(int(text.split()[0]))
    found, waiting = [], [root]
    while waiting:
        found.append(waiting.pop())
        waiting += children.get(found[-1], [])
    return found


def _shared_out_memory(process: int) -> int:
    """KiB of memory of a process, with an equal part of what it shares with others."""
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    return int(re.search(r"^Pss:\s+(\d+)", text, re.M)[1])  # type: ignore[index]


def _timed(command: list[str]) -> dict[str, float]:
    """Seconds, seconds of processor time and peak MiB of a command and all that it starts."""
    start, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    peak = 0

    def watch() -> None:
        nonlocal peak
        while process.poll() is None:
            peak = max(peak, sum(map(_shared_out_memory, _tree(process.pid))))
            time.sleep(0.2)

    watcher = threading.Thread(target=watch)
    watcher.start()
    output = process.communicate()[0]
    watcher.join()
    if process.returncode:
        sys.exit(f"failed: {' '.join(command)}\n{output[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "seconds": time.monotonic() - start,
        "cpu_seconds": after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime,
        "peak_mib": peak / 1024,
    }


@dataclasses.dataclass(frozen=True)
class _Comparison:
    """The text and the settings that both contenders get.

    Attributes:
        input_file, vocab_file: text and vocabulary.
        dupe_factor: copies of every document.
        original: folder of the original, or None.
        original_bytes: how much of the text the original gets.
        folder: for the shards.
    """

    input_file: str
    vocab_file: str
    dupe_factor: int
    original: str | None
    original_bytes: int
    folder: Path

    def time_ours(self, length: int, workers: int, whole_words: bool) -> dict:
        """Times our tool."""
        command = [sys.executable, "-m", "tools.create_pretraining_data"]
        command += [f"--input_file={self.input_file}", f"--num_workers={workers}"]
        command += [f"--output_file={self.folder}/ours.tfrecord", *self._flags(length, whole_words)]
        measured = _timed(command)
        described = (self.folder / "ours.tfrecord.recipe.json").read_text(encoding="utf-8")
        examples = json.loads(described)["counts"]["examples"]
        return _row("ours", length, workers, whole_words, examples) | measured

    def time_original(self, length: int, whole_words: bool) -> dict:
        """Times the original on the first part of the text."""
        text = Path(self.input_file).read_bytes()[: self.original_bytes]
        part = self.folder / "part.txt"
        part.write_bytes(text[: text.rfind(b"\n\n") + 2])
        target = self.folder / "original.tfrecord"
        command = [sys.executable, "-c", _SHIM, str(self.original), f"--input_file={part}"]
        command += [f"--output_file={target}", *self._flags(length, whole_words)]
        measured = _timed(command)
        return _row("original", length, 1, whole_words, _count_records(target)) | measured

    def _flags(self, length: int, whole_words: bool) -> list[str]:
        return [
            f"--vocab_file={self.vocab_file}",
            f"--max_seq_length={length}",
            f"--max_predictions_per_seq={max(1, round(length * 0.15))}",
            f"--dupe_factor={self.dupe_factor}",
            f"--do_whole_word_mask={str(whole_words).lower()}",
        ]


def _row(contender: str, length: int, workers: int, whole_words: bool, examples: int) -> dict:
    return {
        "contender": contender,
        "length": length,
        "workers": workers,
        "whole_words": whole_words,
        "examples": examples,
    }


def _count_records(path: Path) -> int:
    from pipelines.records.reader import load_sizes

    return len(load_sizes(path))


def _compare(
    comparison: _Comparison, lengths: list[int], workers: list[int], masks: list[bool]
) -> list[dict]:
    rows = []
    for length in lengths:
        for whole_words in masks:
            if comparison.original is not None:
                rows.append(comparison.time_original(length, whole_words))
            tried = [1] if whole_words else workers
            rows += [comparison.time_ours(length, number, whole_words) for number in tried]
    return rows


def _run() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        comparison = _Comparison(
            _INPUT_FILE.value,
            _VOCAB_FILE.value,
            _DUPE_FACTOR.value,
            _ORIGINAL.value,
            _ORIGINAL_BYTES.value,
            Path(scratch),
        )
        masks = [False, True] if _WHOLE_WORDS.value else [False]
        rows = _compare(
            comparison, list(map(int, _LENGTHS.value)), list(map(int, _WORKERS.value)), masks
        )
    print(
        "| contender | length | workers | whole words | examples | s | CPU s | examples/s | MiB |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        row["examples_per_second"] = row["examples"] / row["seconds"]
        print(
            f"| {row['contender']} | {row['length']} | {row['workers']} | {row['whole_words']} "
            f"| {row['examples']:,} | {row['seconds']:.1f} | {row['cpu_seconds']:.1f} "
            f"| {row['examples_per_second']:,.0f} | {row['peak_mib']:.0f} |"
        )
    print(json.dumps({"benchmark": "pretraining_data", "rows": rows}))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
