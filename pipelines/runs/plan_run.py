"""What a pre-training run will take, and how fast this machine is."""

import time
from dataclasses import dataclass

from keras_bert_impl.config import BertConfig, named_config
from keras_bert_impl.errors import UserError
from keras_bert_impl.planning.plan import Plan, plan_run
from keras_bert_impl.planning.size import parameters_by_part
from keras_bert_impl.training.config import TrainingConfig


@dataclass(frozen=True, kw_only=True)
class PlanRunConfig:
    """What is to be planned.

    Attributes:
        bert_config_file: google's form of the configuration; or else
        model_size: a published size, with
        vocab_size: so many pieces.
        max_seq_length: pieces of an example.
        max_predictions_per_seq: masked places of an example.
        training: batch, steps, precision, devices.
        replicas: over how many devices a batch is split.
        device_memory_gb: 10^9 bytes of one device; None leaves the largest batch out.
        on_cpu: whether the device is the machine's own CPU.
        examples_per_second: the rate of the run; None leaves the hours out.
        measure_steps: time so many steps here, on made-up examples; 0 measures nothing.
    """

    bert_config_file: str | None = None
    model_size: str | None = None
    vocab_size: int = 30522
    max_seq_length: int = 128
    max_predictions_per_seq: int = 20
    training: TrainingConfig
    replicas: int = 1
    device_memory_gb: float | None = None
    on_cpu: bool = False
    examples_per_second: float | None = None
    measure_steps: int = 0


@dataclass(frozen=True)
class PlanRunResults:
    """What was found.

    Attributes:
        parts: parameters by part of the model.
        plan: the run's needs.
        examples_per_second: the rate it was planned with, given or measured.
    """

    parts: dict[str, int]
    plan: Plan
    examples_per_second: float | None


def plan(config: PlanRunConfig) -> PlanRunResults:
    """Plans a run, and measures this machine where that is asked for.

    Raises:
        UserError: no configuration is named, it is not one, or it has too few positions.
    """
    model = _model_config(config)
    model.check_length(config.max_seq_length)
    rate = config.examples_per_second
    if config.measure_steps:
        rate = measure_rate(model, config)
    planned = plan_run(
        model,
        config.training,
        config.max_seq_length,
        config.max_predictions_per_seq,
        config.on_cpu,
        config.replicas,
        config.device_memory_gb * 1e9 if config.device_memory_gb else None,
        rate,
    )
    return PlanRunResults(parameters_by_part(model), planned, rate)


def measure_rate(model_config: BertConfig, config: PlanRunConfig) -> float:
    """Times training steps on made-up examples; gives examples a second of the fastest step."""
    from keras_bert_impl.models.pretrainer import BertPretrainer
    from keras_bert_impl.planning.size import made_up_examples
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
    raise UserError("No model is named; give --bert_config_file or --model_size.")
