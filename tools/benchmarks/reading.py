"""Times reading pre-training shards on one core: by an arithmetical order, and in sequence.

  taskset -c 0 python -m tools.benchmarks.reading --input_file=data/train.tfrecord

Prints a table and one line of JSON: examples a second and the memory of the index.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

from tools import command_line

FLAGS = command_line.FlagSet(__doc__)
_INPUT_FILE = FLAGS.string("input_file", None, "Shards, as for run_pretraining.", required=True)
_BATCH_SIZE = FLAGS.integer("batch_size", 256, "Examples of a batch.", lower_bound=1)
_SECONDS = FLAGS.number("seconds", 10.0, "How long each way is timed.")


def _rate(read: Callable[[int], object], batch_size: int, seconds: float) -> float:
    """Examples a second; the first batches are not counted."""
    for step in range(5):
        read(step)
    start, step = time.perf_counter(), 5
    while (passed := time.perf_counter() - start) < seconds:
        read(step)
        step += 1
    return (step - 5) * batch_size / passed


def _run() -> None:
    from pipelines.inputs.pretraining import PretrainingBatches
    from pipelines.inputs.pretraining_records import stored_shape
    from pipelines.records.check import find_shards
    from pipelines.records.reader import RecordReader

    patterns = _INPUT_FILE.value.split(",")
    shards = find_shards(patterns)
    expected, _ = stored_shape(shards)
    size, seconds = _BATCH_SIZE.value, _SECONDS.value
    shape = (expected.max_seq_length, expected.max_predictions_per_seq)
    reader = RecordReader([shard.path for shard in shards])
    batches = {
        "arithmetical order": PretrainingBatches(patterns, size, *shape, seed=1),
        "in sequence": PretrainingBatches(patterns, size, *shape, seed=1, shuffle=False),
    }
    rates = {name: _rate(source.batch_at, size, seconds) for name, source in batches.items()}
    draws = np.random.default_rng(0)
    rates["records only, not parsed"] = _rate(
        lambda _: reader.read(draws.integers(0, len(reader), size)), size, seconds
    )
    megabytes = reader.index_bytes() / len(reader)
    print("| way | examples/s |\n|---|---|")
    for name, rate in rates.items():
        print(f"| {name} | {rate:,.0f} |")
    print(f"\nIndex: {megabytes:.1f} MB a million records.")
    print(
        json.dumps(
            {
                "benchmark": "reading",
                "length": shape[0],
                "batch_size": size,
                "records": len(reader),
                "index_bytes_per_record": megabytes,
                "examples_per_second": rates,
            }
        )
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns its exit code."""
    return command_line.run(FLAGS, _run, arguments)


if __name__ == "__main__":
    sys.exit(main())
