"""Estimates the time and memory of a pre-training run on this machine."""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass

from keras_bert_impl.config import MODEL_SIZES, BertConfig, named_config
from keras_bert_impl.errors import UserError
from keras_bert_impl.options import check_options, nested, option
from keras_bert_impl.planning import (
    largest_batch,
    parameters_by_part,
    training_flops,
    training_memory,
)
from keras_bert_impl.progress import format_bytes
from keras_bert_impl.training.config import TrainingConfig
from pipelines.runs.remarks import Epochs, remarks


@dataclass(frozen=True, kw_only=True)
class PlanRunConfig:
    """The options of planning."""

    bert_config_file: str | None = option(None, "The model's configuration (google's JSON form).")
    model_size: str | None = option(
        None,
        "A published size, instead of a configuration file.",
        choices=tuple(MODEL_SIZES),
    )
    vocab_size: int = option(
        30522,
        "How many tokens the vocabulary of a model of a published size has.",
        at_least=5,
        at_most=2**24,
    )
    max_seq_length: int = option(128, "Length of an example in tokens.", at_least=5)
    max_predictions_per_seq: int = option(20, "Most masked positions of an example.", at_least=1)
    num_replicas: int = option(
        1, "How many devices, on all machines together, share a batch.", at_least=1, at_most=2**20
    )
    device_memory_gb: float | None = option(
        None,
        "Memory of one device in 10^9 bytes; the plan then gives the largest batch that fits.",
        at_least=0,
        at_most=1e9,
    )
    on_cpu: bool = option(False, "The device is a CPU: checkpoints share its memory.")
    examples_per_second: float | None = option(
        None,
        "The rate of the whole run; the plan then gives its hours.",
        at_least=1e-9,
        at_most=1e15,
    )
    measure_steps: int = option(
        0,
        "Time this many steps on this machine, on made-up examples, to get the rate.",
        at_least=0,
        at_most=10**6,
    )
    price_per_hour: float | None = option(
        None,
        "What an hour of the whole run costs, in any currency; the plan then gives its price.",
        at_least=0,
        at_most=1e15,
    )
    num_examples: int | None = option(
        None,
        "Examples in the shards (inspect_pretraining_data counts them); the plan then gives the "
        "epochs.",
        at_least=1,
    )
    training: TrainingConfig = nested(
        TrainingConfig,
        defaults={"num_train_steps": 1_000_000, "train_batch_size": 256, "learning_rate": 1e-4},
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.price_per_hour and not (self.examples_per_second or self.measure_steps):
            raise UserError(
                f"`price_per_hour={self.price_per_hour}` needs the rate of the run; give "
                "`examples_per_second`, or `measure_steps` on the machine that will train."
            )


def plan(config: PlanRunConfig) -> tuple[dict[str, str], list[str]]:
    """What a run needs, in words by its names, and what its owner should be told.

    This machine is measured where that is asked for. Tokens count padding, operations are those of
    matrix products.
    """
    model, training = _model_config(config), config.training
    length, predictions = config.max_seq_length, config.max_predictions_per_seq
    model.check_length(length)
    rate = measure_rate(model, config) if config.measure_steps else config.examples_per_second
    steps = (training.num_train_steps, training.train_batch_size)
    epochs = None if config.num_examples is None else Epochs(*steps, config.num_examples)
    # A run may be planned far from the machine that trains: the replicas are those given.
    told = remarks(training, config.num_replicas, [epochs] if epochs else [])
    sizes = (model, training, length, predictions, config.on_cpu, config.num_replicas)
    parts, memory = parameters_by_part(model), training_memory(*sizes)
    rows = {"parameters": f"{sum(parts.values()):,}"}
    rows |= {f"  {name}": f"{count:,}" for name, count in parts.items()}
    rows["memory of a device"] = format_bytes(sum(memory.values()))
    # Gradients take the place of activations where these are larger.
    rows |= {f"  {name}": format_bytes(x) if x else "in activations" for name, x in memory.items()}
    if room := config.device_memory_gb:
        rows["largest batch that fits"] = f"{largest_batch(*sizes, room * 1e9):,}"
    examples = training.train_batch_size * training.num_train_steps
    flops = float(examples) * training_flops(model, length, predictions)
    rows |= {"examples": f"{examples:,}", "tokens": f"{examples * length:,}"}
    rows["operations"] = f"{flops:.3g}"
    if epochs:
        rows["epochs"] = f"{epochs.number:,.1f}"
    if rate:
        hours = examples / rate / 3600
        rows["examples a second"] = f"{rate:.1f}"
        rows["operations a second"] = f"{flops / hours / 3600:.3g}"
        units = {"hours": 1, "minutes": 60, "seconds": 3600}
        unit = next((unit for unit, part in units.items() if hours * part >= 1), "seconds")
        rows[unit] = f"{hours * units[unit]:,.1f}"
        if config.price_per_hour:
            rows["price"] = f"{hours * config.price_per_hour:,.2f}"
    return rows, told


def measure_rate(model_config: BertConfig, config: PlanRunConfig) -> float:
    """Times training steps on made-up examples; gives examples a second of the fastest step."""
    step = training_step(
        model_config, config.training, config.max_seq_length, config.max_predictions_per_seq
    )
    seconds = []
    for _ in range(config.measure_steps + 1):
        start = time.monotonic()
        step()
        seconds.append(time.monotonic() - start)
    return config.training.train_batch_size / min(seconds[1:])  # the first one compiled


def training_step(
    model_config: BertConfig, training: TrainingConfig, length: int, predictions: int
) -> Callable[[], float]:
    """A function that takes one pre-training step on a made-up batch, and gives its loss."""
    from keras_bert_impl.models.pretrainer import BertPretrainer
    from keras_bert_impl.planning import made_up_examples
    from keras_bert_impl.training.config import dtype_policy
    from keras_bert_impl.training.objectives import PretrainingObjective
    from keras_bert_impl.training.state import TrainingState
    from keras_bert_impl.training.step import TrainingStep
    from keras_bert_impl.training.strategy import make_devices

    devices = make_devices(training)
    with devices.strategy.scope():
        model = BertPretrainer(model_config, dtype=dtype_policy(training.precision))
    model.encoder.recompute = training.recompute
    state = TrainingState(model, training, devices)
    step = TrainingStep(state, PretrainingObjective(), training)
    sizes = (training.train_batch_size, length, predictions, model_config.vocab_size)
    batch, number = made_up_examples(*sizes), itertools.count()

    def take() -> float:
        (row,) = step.run(*step.prepare([batch], next(number), [training.learning_rate]))
        return step.metrics(row)["loss"]

    return take


def _model_config(config: PlanRunConfig) -> BertConfig:
    if config.bert_config_file:
        return BertConfig.from_google_file(config.bert_config_file)
    if config.model_size:
        return named_config(config.model_size, config.vocab_size)
    raise UserError("no model is named; give `bert_config_file` or `model_size`.")
