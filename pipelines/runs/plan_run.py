"""Estimates the time and memory of a pre-training run on this machine."""

import time
from collections.abc import Sequence
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


@dataclass(frozen=True)
class PlanRunResults:
    """What a run needs.

    Attributes:
        parts: the model's parameters.
        memory: bytes of one device by part.
        largest_batch: examples of a step (over all replicas and micro-batches) that fit the
            device memory; 0 if not even one does, None where no memory was given.
        tokens: of the whole run, padding included.
        flops: matrix products' operations of the whole run.
        rate: examples a second.
    """

    parts: dict[str, int]
    memory: dict[str, float]
    largest_batch: int | None
    examples: int
    tokens: int
    flops: float
    rate: float | None
    hours: float | None
    price: float | None
    epochs: Epochs | None
    remarks: Sequence[str]


def plan(config: PlanRunConfig) -> PlanRunResults:
    """Plans a run, and measures this machine where that is asked for."""
    model, training = _model_config(config), config.training
    length, predictions = config.max_seq_length, config.max_predictions_per_seq
    model.check_length(length)
    rate = measure_rate(model, config) if config.measure_steps else config.examples_per_second
    examples = training.train_batch_size * training.num_train_steps
    hours = examples / rate / 3600 if rate else None
    steps = (training.num_train_steps, training.train_batch_size)
    epochs = None if config.num_examples is None else Epochs(*steps, config.num_examples)
    # A run may be planned far from the machine that trains: the replicas are those given.
    told = remarks(training, config.num_replicas, [epochs] if epochs else [])
    sizes = (model, training, length, predictions, config.on_cpu, config.num_replicas)
    memory = config.device_memory_gb
    return PlanRunResults(
        parts=parameters_by_part(model),
        memory=training_memory(*sizes),
        largest_batch=largest_batch(*sizes, memory * 1e9) if memory else None,
        examples=examples,
        tokens=examples * length,
        flops=float(examples) * training_flops(model, length, predictions),
        rate=rate,
        hours=hours,
        price=hours * config.price_per_hour if hours and config.price_per_hour else None,
        epochs=epochs,
        remarks=told,
    )


def measure_rate(model_config: BertConfig, config: PlanRunConfig) -> float:
    """Times training steps on made-up examples; gives examples a second of the fastest step."""
    from keras_bert_impl.models.pretrainer import BertPretrainer
    from keras_bert_impl.planning import made_up_examples
    from keras_bert_impl.training.config import dtype_policy
    from keras_bert_impl.training.objectives import PretrainingObjective
    from keras_bert_impl.training.state import TrainingState
    from keras_bert_impl.training.step import TrainingStep
    from keras_bert_impl.training.strategy import make_devices

    training = config.training
    devices = make_devices(training)
    with devices.strategy.scope():
        model = BertPretrainer(model_config, dtype=dtype_policy(training.precision))
    model.encoder.recompute = training.recompute
    state = TrainingState(model, training, devices)
    step = TrainingStep(state, PretrainingObjective(), training)
    batch = made_up_examples(
        training.train_batch_size,
        config.max_seq_length,
        config.max_predictions_per_seq,
        model_config.vocab_size,
    )
    seconds = []
    for number in range(config.measure_steps + 1):
        start = time.monotonic()
        inputs = step.prepare([batch], number, [training.learning_rate])
        step.metrics(step.run(*inputs)[0])
        seconds.append(time.monotonic() - start)
    return training.train_batch_size / min(seconds[1:])  # the first one compiled


def _model_config(config: PlanRunConfig) -> BertConfig:
    if config.bert_config_file:
        return BertConfig.from_google_file(config.bert_config_file)
    if config.model_size:
        return named_config(config.model_size, config.vocab_size)
    raise UserError("no model is named; give `bert_config_file` or `model_size`.")
