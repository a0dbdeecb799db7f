r"""Times create_pretraining_data from sentence text to finished shards, the original beside it.

  python -m tools.benchmarks.pretraining_data --input_file=corpus.txt --vocab_file=vocab.txt \
      --original=PATH/TO/google-research-bert --original_bytes=5000000

Each run is a fresh process (start-up included). The peak memory is that of all processes together
(proportional shares of what they have in common). The original runs unmodified under TensorFlow 2's
compat.v1 on the first `original_bytes` of the text, whole documents. Prints a table and one line of
JSON.
"""

import json
import re
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
    """KiB of memory of a process, what it shares divided by who shares it."""
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    return int(re.search(r"^Pss:\s+(\d+)", text, re.M)[1])  # type: ignore[index]


def _timed(command: list[str]) -> tuple[float, float, str]:
    """Seconds, peak MiB of the process tree, and what it printed."""
    start = time.monotonic()
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
    return time.monotonic() - start, peak / 1024, output


def _shared_flags(length: int, whole_words: bool) -> list[str]:
    predictions = max(1, round(length * 0.15))
    return [
        f"--vocab_file={_VOCAB_FILE.value}",
        f"--max_seq_length={length}",
        f"--max_predictions_per_seq={predictions}",
        f"--dupe_factor={_DUPE_FACTOR.value}",
        f"--do_whole_word_mask={str(whole_words).lower()}",
    ]


def _ours(folder: Path, length: int, workers: int, whole_words: bool) -> dict:
    command = [sys.executable, "-m", "tools.create_pretraining_data", f"--num_workers={workers}"]
    command += [f"--input_file={_INPUT_FILE.value}", f"--output_file={folder}/ours.tfrecord"]
    seconds, peak, _ = _timed(command + _shared_flags(length, whole_words))
    told = json.loads((folder / "ours.tfrecord.recipe.json").read_text(encoding="utf-8"))
    written = sum(shard["bytes"] for shard in told["shards"])
    return _row("ours", length, workers, whole_words, told["counts"]["examples"], seconds, peak) | {
        "disk_mb_per_s": written / seconds / 1e6
    }


def _row(
    name: str,
    length: int,
    workers: int,
    whole_words: bool,
    examples: int,
    seconds: float,
    peak: float,
) -> dict:
    return {
        "who": name,
        "length": length,
        "workers": workers,
        "whole_words": whole_words,
        "examples": examples,
        "seconds": seconds,
        "examples_per_second": examples / seconds,
        "peak_mib": peak,
    }


def _original(folder: Path, length: int, whole_words: bool) -> dict:
    text = Path(_INPUT_FILE.value).read_bytes()[: _ORIGINAL_BYTES.value]
    part = folder / "part.txt"
    part.write_bytes(text[: text.rfind(b"\n\n") + 2])
    command = [sys.executable, "-c", _SHIM, _ORIGINAL.value, f"--input_file={part}"]
    command += [f"--output_file={folder}/original.tfrecord"]
    seconds, peak, printed = _timed(command + _shared_flags(length, whole_words))
    found = re.search(r"Wrote (\d+) total instances", printed)
    examples = int(found[1]) if found else _count_records(folder / "original.tfrecord")
    return _row("original", length, 1, whole_words, examples, seconds, peak)


def _count_records(path: Path) -> int:
    from pipelines.records.index import load_sizes

    return len(load_sizes(path))


def _run() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for length in map(int, _LENGTHS.value):
            for whole_words in (False, True) if _WHOLE_WORDS.value else (False,):
                if _ORIGINAL.value:
                    rows.append(_original(folder, length, whole_words))
                workers = map(int, _WORKERS.value) if not whole_words else (1,)
                rows += [_ours(folder, length, number, whole_words) for number in workers]
    print("| who | length | workers | whole words | examples | s | examples/s | MiB |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['who']} | {row['length']} | {row['workers']} | {row['whole_words']} "
            f"| {row['examples']:,} | {row['seconds']:.1f} | {row['examples_per_second']:,.0f} "
            f"| {row['peak_mib']:.0f} |"
        )
    print(json.dumps({"benchmark": "pretraining_data", "rows": rows}))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
