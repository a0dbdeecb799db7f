"""One step of everything, leaving nothing behind: what `--dry_run` does."""

import itertools
from collections.abc import Sequence
from typing import Any

from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.objective import Objective
from keras_bert_impl.training.phases import Phase
from keras_bert_impl.training.state import TrainingState
from keras_bert_impl.training.step import TrainingStep
from keras_bert_impl.training.strategy import Devices
from keras_bert_impl.training.watch import check_finite


def rehearse(
    model: Any,
    objective: Objective,
    phases: Sequence[Phase],
    config: TrainingConfig,
    devices: Devices,
) -> list[dict[str, float]]:
    """Takes one step of each phase, at the very beginning of its data, with learning rate 0.

    Args:
        model: a Keras model, built in `devices.strategy.scope()`; its weights stay as they are.
        objective: what to minimise.
        phases: the run's data.
        config: how.
        devices: where.

    Returns:
        Each phase's figures of that step.

    Raises:
        UserError: the loss or the gradient is no number.
    """
    state = TrainingState(model, config, devices)
    step = TrainingStep(model, objective, state.optimizer, state.loss_scale, devices, config)
    figures = []
    for phase in phases:
        batches = list(itertools.islice(phase.batches.batches_from(0), config.iterations_per_loop))
        inputs = step.prepare(batches, 0, [0.0] * len(batches))
        metrics = step.metrics(step.run(*inputs)[-1])
        scaled = config.precision == "float16"
        check_finite(1, metrics, scaled, getattr(phase.batches, "where", None))
        figures.append(metrics)
    return figures
