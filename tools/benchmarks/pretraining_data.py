r"""Times create_pretraining_data from sentence text to finished shards, or the reading of shards.

  python -m tools.benchmarks.pretraining_data --input_file=corpus.txt --vocab_file=vocab.txt \
      --original=PATH/TO/google-research-bert --original_bytes=5000000

Each run is a fresh process (start-up included). The peak memory is that of all processes together
(each with an equal part of what they share). The original runs unmodified under TensorFlow 2's
compat.v1 on the first `original_bytes` of the text, whole documents. Processor seconds leave out
workers that are forked (more than one worker).

  taskset -c 0 python -m tools.benchmarks.pretraining_data --task=reading \
      --input_file=data/train.tfrecord

Times reading on one core: by an arithmetical order, in sequence, and records that are not parsed.
Both print a table and one line of JSON.
"""

import json
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import REQUIRED, check_options, option
from tools.benchmarks.measuring import Table, show_json
from tools.config_flags import ConfigFlags


@dataclass(frozen=True, kw_only=True)
class PretrainingDataConfig:
    """The options of the timing."""

    task: str = option("creation", "What to time.", choices=("creation", "reading"))
    input_file: str = option(
        REQUIRED, "Documents, one sentence a line; to read: shards, as for run_pretraining."
    )
    vocab_file: str | None = option(None, "The vocabulary.")
    original: str | None = option(
        None, "Folder with google-research/bert, to time it on the same text."
    )
    original_bytes: int = option(
        5_000_000, "How much of the text the original gets; its cost is linear.", at_least=1
    )
    workers: tuple[int, ...] = option((1, 2), "Numbers of workers to try.")
    lengths: tuple[int, ...] = option((128,), "Lengths to try.")
    whole_words: bool = option(True, "Time whole-word masking too (one worker).")
    dupe_factor: int = option(10, "Copies of every document.", at_least=1)
    batch_size: int = option(256, "Examples of a batch that is read.", at_least=1)
    seconds: float = option(10.0, "How long each way of reading is timed.", more_than=0)

    def __post_init__(self) -> None:
        check_options(self)
        if self.task == "creation" and not self.vocab_file:
            raise UserError("shards are created with a vocabulary; give `vocab_file`.")


FLAGS = ConfigFlags(__doc__, PretrainingDataConfig)

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


def timed(command: list[str]) -> dict[str, float]:
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


@dataclass(frozen=True)
class Run:
    """One run: who, the length of its examples, its workers, and what is masked."""

    contender: str
    length: int
    workers: int
    whole_words: bool


def runs_of(config: PretrainingDataConfig) -> list[Run]:
    """All runs in their order."""
    runs = []
    for length in config.lengths:
        for whole_words in (False, True) if config.whole_words else (False,):
            if config.original is not None:
                runs.append(Run("original", length, 1, whole_words))
            tried = (1,) if whole_words else config.workers
            runs += [Run("ours", length, number, whole_words) for number in tried]
    return runs


def time_run(config: PretrainingDataConfig, run: Run, folder: Path) -> dict[str, Any]:
    """Times a run, which writes its shards to a folder."""
    flags = [
        f"--vocab_file={config.vocab_file}",
        f"--max_seq_length={run.length}",
        f"--max_predictions_per_seq={max(1, round(run.length * 0.15))}",
        f"--dupe_factor={config.dupe_factor}",
        f"--do_whole_word_mask={str(run.whole_words).lower()}",
    ]
    target = folder / f"{run.contender}.tfrecord"
    if run.contender == "ours":
        command = [sys.executable, "-m", "tools.create_pretraining_data"]
        command += [f"--input_file={config.input_file}", f"--num_workers={run.workers}"]
        measured = timed([*command, f"--output_file={target}", *flags])
        described = (folder / f"{target.name}.recipe.json").read_text(encoding="utf-8")
        examples = json.loads(described)["counts"]["examples"]
    else:
        from pipelines.records.reader import load_sizes

        text = Path(config.input_file).read_bytes()[: config.original_bytes]
        part = folder / "part.txt"
        part.write_bytes(text[: text.rfind(b"\n\n") + 2])
        command = [sys.executable, "-c", _SHIM, str(config.original), f"--input_file={part}"]
        measured = timed([*command, f"--output_file={target}", *flags])
        examples = len(load_sizes(target))
    rate = examples / measured["seconds"]
    return {**vars(run), "examples": examples, **measured, "examples_per_second": rate}


def _time_creation(config: PretrainingDataConfig) -> None:
    columns = {"length": "", "workers": "", "whole words": "", "examples": ",", "seconds": ".1f"}
    columns |= {"cpu_seconds": ".1f", "examples_per_second": ",.0f", "peak_mib": ".0f"}
    table, rows = Table({"contender": "", **columns}, first=10), []
    with tempfile.TemporaryDirectory() as scratch:
        for run in runs_of(config):
            rows.append(time_run(config, run, Path(scratch)))
            shown = {**rows[-1], "whole words": "yes" if run.whole_words else "no"}
            table.row(run.contender, *(shown[name] for name in columns))
    show_json({"benchmark": "pretraining_data", "rows": rows})


def _rate(read: Callable[[int], object], batch_size: int, seconds: float) -> float:
    """Examples a second; the first batches are not counted."""
    for step in range(5):
        read(step)
    start, step = time.perf_counter(), 5
    while (passed := time.perf_counter() - start) < seconds:
        read(step)
        step += 1
    return (step - 5) * batch_size / passed


def _time_reading(config: PretrainingDataConfig) -> None:
    from pipelines.inputs.pretraining import PretrainingBatches
    from pipelines.inputs.pretraining_records import stored_shape
    from pipelines.records.check import find_shards
    from pipelines.records.reader import RecordReader

    patterns = config.input_file.split(",")
    shards = find_shards(patterns)
    expected, _ = stored_shape(shards)
    shape = (expected.max_seq_length, expected.max_predictions_per_seq)
    reader, size = RecordReader([shard.path for shard in shards]), config.batch_size
    draws = np.random.default_rng(0)
    ways: dict[str, Callable[[int], object]] = {
        "arithmetical order": PretrainingBatches(patterns, size, *shape, seed=1).batch_at,
        "in sequence": PretrainingBatches(patterns, size, *shape, seed=1, shuffle=False).batch_at,
        "records only, not parsed": lambda _: reader.read(draws.integers(0, len(reader), size)),
    }
    table, rates = Table({"way": "", "examples/s": ",.0f"}), {}
    for name, read in ways.items():
        rates[name] = _rate(read, size, config.seconds)
        table.row(name, rates[name])
    index = reader.index_bytes() / len(reader)
    print(f"\nIndex: {index:.1f} MB a million records.")
    show_json(
        {
            "benchmark": "reading",
            "length": shape[0],
            "batch_size": size,
            "records": len(reader),
            "index_bytes_per_record": index,
            "examples_per_second": rates,
        }
    )


def _run(config: PretrainingDataConfig) -> None:
    (_time_creation if config.task == "creation" else _time_reading)(config)


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
