"""What a training run will take: memory, steps, operations, time."""

import dataclasses

from keras_bert_impl.config import BertConfig
from keras_bert_impl.planning.memory import training_memory
from keras_bert_impl.planning.model_size import count_parameters, training_flops
from keras_bert_impl.training.config import TrainingConfig


@dataclasses.dataclass(frozen=True)
class Plan:
    """A run's needs.

    Attributes:
        parameters: numbers of the model.
        memory: bytes of one device by part.
        largest_batch: examples of a step (over all replicas and micro-batches) that fit the
            device memory; 0 if not even one does, None where no memory was given.
        examples: of the whole run.
        tokens: of the whole run, padding included.
        flops: matrix products' operations of the whole run.
        hours: at the given rate; None without one.
    """

    parameters: int
    memory: dict[str, float]
    largest_batch: int | None
    examples: int
    tokens: int
    flops: float
    hours: float | None


def plan_run(
    config: BertConfig,
    training: TrainingConfig,
    length: int,
    predictions: int,
    on_cpu: bool,
    replicas: int = 1,
    device_bytes: float | None = None,
    examples_per_second: float | None = None,
) -> Plan:
    """Plans a run.

    Args:
        config: the model.
        training: batch, steps, precision.
        length: pieces of an example.
        predictions: masked places of an example.
        on_cpu: whether the device's memory is the machine's.
        replicas: over how many devices a batch is split.
        device_bytes: memory of one device.
        examples_per_second: the rate of the whole run.

    Example:
        >>> from keras_bert_impl.config import named_config
        >>> training = TrainingConfig(
        ...     learning_rate=1e-4, num_train_steps=1000, num_warmup_steps=2, batch_size=256
        ... )
        >>> base = named_config("base", 30522)
        >>> plan = plan_run(base, training, 128, 20, on_cpu=False, examples_per_second=256)
        >>> plan.tokens, round(plan.hours, 2)
        (32768000, 0.28)
    """
    examples = training.batch_size * training.num_train_steps
    rate = examples_per_second
    return Plan(
        parameters=count_parameters(config),
        memory=training_memory(config, training, length, predictions, on_cpu, replicas),
        largest_batch=None
        if device_bytes is None
        else largest_batch(config, training, length, predictions, on_cpu, replicas, device_bytes),
        examples=examples,
        tokens=examples * length,
        flops=float(examples) * training_flops(config, length, predictions),
        hours=examples / rate / 3600 if rate else None,
    )


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
        tried = dataclasses.replace(training, batch_size=rows * parts)
        return sum(training_memory(config, tried, length, predictions, on_cpu, replicas).values())

    # The estimate grows with the rows of a part: halve the range in which it passes the memory.
    fits, too_many = 0, 1
    while needed(too_many) <= device_bytes:
        fits, too_many = too_many, 2 * too_many
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        fits, too_many = (middle, too_many) if needed(middle) <= device_bytes else (fits, middle)
    return parts * fits
