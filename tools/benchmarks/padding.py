"""Measures what padding costs when a model is fine-tuned for a task, and when it answers.

The same model takes steps over the same rows in several ways, in turns in one process:
  pad       every batch padded to --max_seq_length, as google's script does
  cut       every batch padded to its longest row, rounded up to one of at most eight lengths
            that suit the data (--nogroup_by_length)
  sorted    rows of like lengths in a batch (the default of training), padded in the same way
  trainer   transformers with PyTorch and its group_by_length, where both are installed
  answer_pad, answer_sorted
            no training: batches of prediction, padded to --max_seq_length or of like lengths

What is compiled once for each length is compiled before the clock starts. An epoch of steps or a
multiple of it sees the lengths as they are; batches are shuffled inside windows of up to fifty, so
a hundred steps see them nearly so.

Example:
  python -m tools.benchmarks.padding --task_name=CoLA --data_dir=glue_data/CoLA
      --init_checkpoint=all-MiniLM-L6-v2 --max_seq_length=128
  python -m tools.benchmarks.padding --train_file=train-v1.1.json --max_seq_length=384
      --init_checkpoint=all-MiniLM-L6-v2 --ways=pad,cut,sorted,trainer,answer_pad,answer_sorted
"""

import collections
import contextlib
import itertools
import multiprocessing
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import check_options, option
from tools.benchmarks.measuring import (
    Table,
    cores,
    in_turns,
    missing,
    seconds_of,
    show_json,
    spread,
)
from tools.benchmarks.parity import Peer, torch_inputs, torch_labels
from tools.config_flags import ConfigFlags


@dataclass(frozen=True, kw_only=True)
class PaddingConfig:
    """The options of the measurement."""

    task_name: str = option("CoLA", "A task of GLUE.")
    data_dir: Path | None = option(None, "The folder with its train.tsv.")
    train_file: Path | None = option(
        None,
        "Questions in SQuAD's form, in place of a task of GLUE; the task is then called squad.",
    )
    init_checkpoint: str | None = option(None, "The model; or give the next two flags.")
    model_size: str | None = option(None, "A published size with random weights.")
    vocab_file: str | None = option(None, "The vocabulary for it, uncased.")
    max_seq_length: int = option(128, "The most tokens of a row.", at_least=5)
    train_batch_size: int = option(32, "Rows of a step.", at_least=1)
    num_steps: int = option(50, "Steps of a measurement.", at_least=1)
    rounds: int = option(3, "How often each way is measured.", at_least=1)
    ways: tuple[str, ...] = option(
        ("pad", "cut", "sorted", "trainer"), "What to measure; see above."
    )

    def __post_init__(self) -> None:
        check_options(self)
        if bool(self.data_dir) == bool(self.train_file):
            raise UserError("give `data_dir`, a folder of GLUE, or `train_file` with questions.")


FLAGS = ConfigFlags(__doc__, PaddingConfig)

_SEED = 1
_MOST_BATCHES = 500  # so many are kept in memory for PyTorch
_TRAINER: list[Any] = []  # in PyTorch's process: model, optimizer, kind of model, batches
Steps = Callable[[int], None]


def our_ways(
    rows: Any, head: Any, devices: Any, training: Any, length: int, wanted: Sequence[str]
) -> dict[str, Any]:
    """Gives, by way, the function that takes further steps, and the share of padding."""
    from keras_bert_impl.training.batches import prefetched
    from keras_bert_impl.training.state import TrainingState
    from keras_bert_impl.training.step import TrainingStep
    from pipelines.inputs.row_batches import RowBatches

    state = TrainingState(head.model, training, devices)
    step = TrainingStep(state, head.objective, training)

    def take(batches: Iterator[Any]) -> None:
        row = None
        with prefetched(batches) as ready:
            for batch in ready:
                (row,) = step.run(*step.prepare([batch], 0, [1e-5]))
        step.metrics(row)  # waits until the last step is done

    def way(*, fixed: bool, by_length: bool) -> tuple[Steps, float]:
        size, fixed_length = training.train_batch_size, length if fixed else None
        source = RowBatches(
            rows, size, training.seed, fixed_length=fixed_length, by_length=by_length
        )
        endless, seen = source.batches_from(0), set()
        for batch in itertools.islice(source.batches_from(0), 200):
            if batch["input_ids"].shape not in seen:
                seen.add(batch["input_ids"].shape)
                take(iter([batch]))  # compiles what is compiled for this length
        return lambda count: take(itertools.islice(endless, count)), source.padding_share()

    arranged = {
        "pad": {"fixed": True, "by_length": False},
        "cut": {"fixed": False, "by_length": False},
        "sorted": {"fixed": False, "by_length": True},
    }
    return {name: way(**options) for name, options in arranged.items() if name in wanted}


def answer_ways(
    rows: Any, head: Any, devices: Any, size: int, length: int, num_steps: int
) -> dict[str, Any]:
    """Gives, by way, the function that answers further batches, and the share of padding."""
    from keras_bert_impl.training.evaluation import Prediction
    from pipelines.inputs.row_batches import RowEvaluation

    predict = Prediction(head.model, head.objective.input_names, devices.strategy)

    def take(batches: Iterator[Any]) -> None:
        collections.deque(predict(SimpleNamespace(batches=lambda: batches)), maxlen=0)

    def way(fixed_length: int | None) -> tuple[Steps, float]:
        source = RowEvaluation(rows, size, fixed_length)
        every = max(1, source.num_batches // num_steps)
        some = itertools.islice(source.numbers(), 0, every * num_steps, every)
        chosen = list(map(source.batch_of, some))
        take(iter({batch["input_ids"].shape: batch for batch in chosen}.values()))
        endless = itertools.cycle(chosen)
        return lambda count: take(itertools.islice(endless, count)), source.padding_share()

    return {"answer_pad": way(length), "answer_sorted": way(None)}


@contextlib.contextmanager
def trainer_way(rows: Any, folder: str, training: Any, peer: Peer) -> Iterator[tuple[Steps, float]]:
    """The same of transformers: its sampler for like lengths, batches padded to their longest.

    It runs in a process of its own: PyTorch's LLVM and XLA's do not share one.
    """
    import numpy as np

    from pipelines.processes import worker_pool

    size, lengths = training.train_batch_size, rows.lengths
    context = multiprocessing.get_context("spawn")
    with worker_pool(1, context, "run the measurement again") as pool:
        order = pool.submit(trainer_order, lengths.tolist(), size, training.seed).result()
        chosen = [np.array(order[at : at + size]) for at in range(0, len(order) - size + 1, size)]
        positions = sum(size * int(lengths[batch].max()) for batch in chosen)
        tokens = sum(int(lengths[batch].sum()) for batch in chosen)
        batches = [
            rows.read(batch).padded(int(lengths[batch].max())) for batch in chosen[:_MOST_BATCHES]
        ]
        pool.submit(start_trainer, folder, peer, batches).result()
        yield lambda count: pool.submit(take_in_trainer, count).result(), 1 - tokens / positions


def trainer_order(lengths: list[int], size: int, seed: int) -> list[int]:
    """The rows of an epoch in the order of transformers' sampler."""
    import torch
    from transformers.trainer_pt_utils import LengthGroupedSampler

    generator = torch.Generator().manual_seed(seed)
    return list(LengthGroupedSampler(size, lengths=lengths, generator=generator))


def start_trainer(folder: str, peer: Peer, batches: list[Any]) -> None:
    """Makes the model of this process, and takes two steps so that nothing is new afterwards."""
    import torch

    torch.set_num_threads(len(cores()))
    model = peer.load(folder).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    _TRAINER[:] = [model, optimizer, peer, itertools.cycle(batches)]
    take_in_trainer(2)


def take_in_trainer(count: int) -> None:
    """Takes further steps with the model of this process."""
    import torch

    model, optimizer, peer, batches = _TRAINER
    for batch in itertools.islice(batches, count):
        optimizer.zero_grad()
        model(**torch_inputs(batch), **torch_labels(batch, peer)).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def measure(
    ways: dict[str, Steps], num_steps: int, rounds: int, batch_size: int
) -> dict[str, list[float]]:
    """Examples a second of each way, round by round."""

    def rate(take: Steps) -> float:
        return num_steps * batch_size / seconds_of(lambda: take(num_steps))

    return in_turns({name: partial(rate, take) for name, take in ways.items()}, rounds)


def _run(config: PaddingConfig) -> None:
    import keras

    from keras_bert_impl.checkpoints.model_source import find_model, label_names
    from keras_bert_impl.tokenization.tokenizer import Tokenizer
    from keras_bert_impl.training.config import TrainingConfig
    from keras_bert_impl.training.strategy import make_devices
    from pipelines.fine_tuning.task_data import TaskData

    training = TrainingConfig(
        learning_rate=1e-5,
        num_train_steps=1,
        num_warmup_steps=0,
        train_batch_size=config.train_batch_size,
        seed=_SEED,
    )
    devices = make_devices(training)
    source = find_model(
        config.init_checkpoint,
        model_size=config.model_size,
        vocab_file=config.vocab_file,
        default_lower_case=True,
    )
    task = _task(config)
    model_config = task.configure(source.config)
    keras.utils.set_random_seed(_SEED)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as peers:
        data = TaskData(task, Tokenizer(source.text), config.max_seq_length, Path(folder))
        rows = data.rows(task.train_split)
        with devices.strategy.scope():
            head = task.head(model_config)
        ways = our_ways(rows, head, devices, training, config.max_seq_length, config.ways)
        if "trainer" in config.ways and (why := _why_no_trainer(config)):
            print(f"trainer is left out: {why}")
        elif "trainer" in config.ways:
            kind = Peer.of_questions if config.train_file else Peer.of_texts
            peer = kind(len(label_names(model_config)))
            trainer = trainer_way(rows, str(source.checkpoint), training, peer)
            ways["trainer"] = peers.enter_context(trainer)
        if any(way.startswith("answer") for way in config.ways):
            size, steps_each = config.train_batch_size, config.num_steps
            ways |= answer_ways(rows, head, devices, size, config.max_seq_length, steps_each)
        ways = {name: way for name, way in ways.items() if name in config.ways}
        steps = {name: take for name, (take, _) in ways.items()}
        rates = measure(steps, config.num_steps, config.rounds, config.train_batch_size)
    _show(config, task.name, rates, {name: share for name, (_, share) in ways.items()})


def _task(config: PaddingConfig) -> Any:
    from pipelines.tasks.labels.glue import find_task
    from pipelines.tasks.questions.task import QuestionTask

    if config.data_dir:
        return find_task(config.task_name).at(config.data_dir)
    return QuestionTask(train_file=config.train_file)


def _why_no_trainer(config: PaddingConfig) -> str | None:
    if lacking := missing("torch", "transformers"):
        return f"{' and '.join(lacking)} not installed."
    return None if config.init_checkpoint else "it needs --init_checkpoint."


def _show(
    config: PaddingConfig, task: str, rates: dict[str, list[float]], padding: dict[str, float]
) -> None:
    middle = {name: statistics.median(measured) for name, measured in rates.items()}
    shape = f"length {config.max_seq_length}, batches of {config.train_batch_size}"
    print(f"{task}, {shape}, {len(cores())} cores")
    columns = {"padding": ".1%", "examples/s": ".1f", "spread": ".1%", "to pad": ".2f"}
    table, ratios = Table({"way": "", **columns}, first=13), {}
    for name, measured in rates.items():
        if base := middle.get("answer_pad" if name.startswith("answer") else "pad"):
            ratios[name] = middle[name] / base
        table.row(name, padding[name], middle[name], spread(measured), ratios.get(name))
    figures = {"examples_per_second": rates, "padding": padding, "to_pad": ratios}
    show_json({"task": task, "max_seq_length": config.max_seq_length, **figures})


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
