"""Estimates of a pre-training run: parameters, memory, the largest batch, operations, time."""

import bisect
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from keras_bert_impl.config import MODEL_SIZES, BertConfig, named_config
from keras_bert_impl.errors import UserError
from keras_bert_impl.options import Options, nested, option
from keras_bert_impl.progress import format_bytes
from keras_bert_impl.training.config import MOST_EXAMPLES, TrainingConfig
from pipelines.runs.remarks import Epochs, remarks


@dataclass(frozen=True, kw_only=True)
class PlanRunConfig(Options):
    """The options of planning."""

    bert_config_file: str | None = option(None, "The model's configuration (google's JSON form).")
    model_size: str | None = option(
        None, "A published size, instead of a configuration file.", choices=tuple(MODEL_SIZES)
    )
    vocab_size: int = option(
        30522, "Tokens of the vocabulary, for a published size.", at_least=5, at_most=2**24
    )
    max_seq_length: int = option(128, "Length of an example in tokens.", at_least=5)
    max_predictions_per_seq: int = option(20, "Most masked positions of an example.", at_least=1)
    num_replicas: int = option(
        1, "How many devices, on all machines together, share a batch.", at_least=1, at_most=2**20
    )
    device_memory_gb: float | None = option(
        None, "Memory of one device in 10^9 bytes, to find the batch.", at_least=0, at_most=1e9
    )
    on_cpu: bool = option(False, "The device is a CPU: checkpoints share its memory.")
    examples_per_second: float | None = option(
        None, "The rate of the whole run, to find its hours.", at_least=1e-9, at_most=1e15
    )
    measure_steps: int = option(
        0, "Time so many steps on this machine to find the rate.", at_least=0, at_most=10**6
    )
    price_per_hour: float | None = option(
        None, "What an hour costs, in any currency, to find the price.", at_least=0, at_most=1e15
    )
    num_examples: int | None = option(
        None,
        "Examples in the shards (inspect_pretraining_data counts them), to find the epochs.",
        at_least=1,
    )
    training: TrainingConfig = nested(
        TrainingConfig,
        defaults={"num_train_steps": 1_000_000, "train_batch_size": 256, "learning_rate": 1e-4},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.training.check_trains()
        asked = {"price_per_hour": self.price_per_hour, "train_hours": self.training.train_hours}
        for name, value in asked.items():
            if value and not (self.examples_per_second or self.measure_steps):
                raise UserError(
                    f"`{name}={value}` needs the rate of the run; give `examples_per_second`, or "
                    "`measure_steps` on the machine that will train."
                )


def plan(config: PlanRunConfig) -> tuple[dict[str, str], list[str]]:
    """What a run needs, in words by its names, and what its owner should be told."""
    model, training = _model_config(config), config.training
    length, predictions = config.max_seq_length, config.max_predictions_per_seq
    model.check_length(length)
    rate = measure_rate(model, config) if config.measure_steps else config.examples_per_second
    steps, examples = steps_and_examples(training, rate or 0.0)
    size = examples / max(steps, 1)
    epochs = None if config.num_examples is None else Epochs(steps, size, config.num_examples)
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
    flops = float(examples) * training_flops(model, length, predictions)
    rows["steps"] = f"{steps:,}"
    rows |= {"examples": f"{examples:,}", "tokens": f"{examples * length:,}"}  # with padding
    rows["operations"] = f"{flops:.3g}"
    if epochs:
        rows["epochs"] = f"{epochs.number:,.1f}"
    if rate:
        hours = max(examples, 1) / rate / 3600
        rows["examples a second"] = f"{rate:.1f}"
        rows["operations a second"] = f"{flops / hours / 3600:.3g}"
        units = {"hours": 1, "minutes": 60, "seconds": 3600}
        unit = next((unit for unit, part in units.items() if hours * part >= 1), "seconds")
        rows[unit] = f"{hours * units[unit]:,.1f}"
        if config.price_per_hour:
            rows["price"] = f"{hours * config.price_per_hour:,.2f}"
    return rows, told


def steps_and_examples(training: TrainingConfig, rate: float) -> tuple[int, int]:
    """How many steps a run takes of how many examples, at a rate where it ends by the clock."""
    size, parts, ramp = training.train_batch_size, training.accumulation_steps, training.batch_ramp
    each, ramp = [part / parts for part in range(1, parts + 1)], ramp or 0.0
    if training.train_hours:
        examples = rate * training.length
        # In equal times as many examples, in more steps where batches are smaller.
        turns = 1 - ramp + ramp * sum(1 / share for share in each) / parts
        return round(examples / size * turns), round(examples)
    steps = training.num_train_steps
    return steps, round(size * steps * (1 - ramp + ramp * sum(each) / parts))


def measure_rate(model_config: BertConfig, config: PlanRunConfig) -> float:
    """Times training steps on made-up examples; gives examples a second of the fastest step."""
    sizes = (config.max_seq_length, config.max_predictions_per_seq)
    step, seconds = training_step(model_config, config.training, *sizes), []
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


_FLOAT = 4
_HALF = 2  # bytes of a number in 16-bit precision
# What a process holds before there is a model: TensorFlow itself, compiled programs, threads.
_RUNTIME = {True: 0.92e9, False: 0.6e9}
# Numbers kept per position of a sequence and layer, counted in the code: in units of hidden size
# (the layer's input; products, queries, keys and values; context, twice; two products and their
# normalized sums), of intermediate size (before and after the activation) and of heads x length
# (scores, probabilities).
_KEPT_HIDDEN, _KEPT_WIDE, _KEPT_SCORES = 13, 2, 2
# Further layers whose numbers the backward pass holds; with recomputation all that is held. These,
# the runtime and the logits are fitted to measured runs (`RESULTS.md`).
_BACKWARD_LAYERS, _RECOMPUTED_LAYERS = 1.5, 1.8
_KEPT_LOGITS = {True: 3.2, False: 4.2}  # float32 copies, in float32 and in mixed precision
# With micro-batches memory of one is not yet given back when the next one takes its own.
_PARTS_HELD = 2


def training_memory(
    config: BertConfig,
    training: TrainingConfig,
    length: int,
    predictions: int,
    on_cpu: bool,
    replicas: int = 1,
) -> dict[str, float]:
    """Estimates one device's memory while it trains, in bytes by part."""
    numbers, averaged = sum(parameters_by_part(config).values()), training.ema_decay > 0
    # Rounded up: the largest part decides.
    rows = -(-training.train_batch_size // (replicas * training.accumulation_steps))
    several = training.accumulation_steps > 1
    activations = rows * activation_bytes(config, training, length)
    activations *= _PARTS_HELD if several else 1
    copies = _KEPT_LOGITS[training.precision == "float32"]
    logits = rows * predictions * config.vocab_size * _FLOAT * copies
    weights = float(_FLOAT * numbers)
    summed = weights if several else 0.0  # gradients, over micro-batches
    parts = {
        "runtime": _RUNTIME[on_cpu],
        "weights": weights,
        "adam_moments": 2 * weights,
        **({"average": weights} if averaged else {}),
        # Gradients take the place of activations as the backward pass goes on.
        "gradients": summed + max(0.0, weights - activations - logits),
        "activations": activations,
        "logits": logits,
    }
    if on_cpu:  # the weights, both moments and perhaps the average
        parts["checkpoint_copy"] = (4 if averaged else 3) * weights
    return parts


def activation_bytes(config: BertConfig, training: TrainingConfig, length: int) -> float:
    """Estimates the most that the backward pass of one example holds, in bytes."""
    size = _FLOAT if training.precision == "float32" else _HALF
    layer = length * (
        _KEPT_HIDDEN * config.hidden_size
        + _KEPT_WIDE * config.intermediate_size
        + _KEPT_SCORES * config.num_attention_heads * length
    )
    if training.recompute:
        inputs = config.num_hidden_layers * length * config.hidden_size
        return size * (inputs + _RECOMPUTED_LAYERS * layer)
    return size * (config.num_hidden_layers + _BACKWARD_LAYERS) * layer


def largest_batch(
    config: BertConfig,
    training: TrainingConfig,
    length: int,
    predictions: int,
    on_cpu: bool,
    replicas: int,
    device_bytes: float,
) -> int:
    """Finds the largest batch whose estimate fits into a device's memory; 0 if none does."""
    parts = replicas * training.accumulation_steps

    def needed(rows: int) -> float:
        tried = replace(training, train_batch_size=rows * parts)
        return sum(training_memory(config, tried, length, predictions, on_cpu, replicas).values())

    # The estimate grows with the rows of a part.
    rows = range(1, MOST_EXAMPLES // parts + 1)
    return parts * bisect.bisect_right(rows, device_bytes, key=needed)


def parameters_by_part(config: BertConfig) -> dict[str, int]:
    """Counts a pre-training model's numbers by part."""
    hidden, wide, tokens = config.hidden_size, config.intermediate_size, config.vocab_size
    rows = tokens + config.type_vocab_size + config.max_position_embeddings
    attention = 4 * (hidden * hidden + hidden)
    feed_forward = hidden * wide + wide + wide * hidden + hidden
    return {
        "embeddings": rows * hidden + 2 * hidden,
        "layers": config.num_hidden_layers * (attention + feed_forward + 4 * hidden),
        "pooler": hidden * hidden + hidden,
        "masked_lm_head": hidden * hidden + 3 * hidden + tokens,
        "next_sentence_head": 2 * hidden + 2,
    }


def encoder_flops(config: BertConfig, length: int) -> int:
    """Counts the operations of the encoder's matrix products for one example.

    A product of [n, k] and [k, m] counts 2 n k m.
    """
    hidden, wide = config.hidden_size, config.intermediate_size
    layer = 2 * length * (4 * hidden * hidden + 2 * hidden * wide) + 4 * length * length * hidden
    return config.num_hidden_layers * layer


def training_flops(config: BertConfig, length: int, predictions: int) -> int:
    """Counts those of a training step, with the heads: the backward pass is two forward ones."""
    hidden = config.hidden_size
    heads = 2 * predictions * (hidden * hidden + hidden * config.vocab_size)
    heads += 2 * hidden * hidden + 4 * hidden
    return 3 * (encoder_flops(config, length) + heads)


def made_up_examples(
    rows: int, length: int, predictions: int, vocab_size: int
) -> dict[str, np.ndarray]:
    """The features of full-length examples of pre-training, [rows, ...] each."""
    draws = np.random.default_rng(0)
    tokens = draws.integers(5, vocab_size, [rows, length], np.int32)
    return {
        "input_ids": tokens,
        "input_mask": np.ones([rows, length], np.int32),
        "segment_ids": np.repeat(np.arange(length)[None] >= length // 2, rows, 0).astype(np.int32),
        "masked_lm_positions": draws.integers(1, length, [rows, predictions], np.int32),
        "masked_lm_ids": draws.integers(5, vocab_size, [rows, predictions], np.int32),
        "masked_lm_weights": np.ones([rows, predictions], np.float32),
        "next_sentence_labels": draws.integers(0, 2, [rows, 1], np.int32),
    }
