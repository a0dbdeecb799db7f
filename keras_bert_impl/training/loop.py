"""The training loop."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from keras_bert_impl.optimizers.schedules import learning_rate_schedule
from keras_bert_impl.training.batches import BatchSource
from keras_bert_impl.training.checkpoints import Checkpoints
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.objective import Objective
from keras_bert_impl.training.prefetch import prefetched
from keras_bert_impl.training.resume import check_settings
from keras_bert_impl.training.run_directory import RunDirectory
from keras_bert_impl.training.split import chunk_lengths
from keras_bert_impl.training.state import TrainingState
from keras_bert_impl.training.step import TrainingStep
from keras_bert_impl.training.stop_signal import on_sigterm
from keras_bert_impl.training.strategy import Devices, make_devices
from keras_bert_impl.training.watch import Watch, check_finite


@dataclasses.dataclass(frozen=True)
class TrainingResult:
    """How a run ended.

    Attributes:
        step: optimizer steps done in all.
        finished: whether that is all of them; otherwise the same call continues.
        resumed_from: the checkpoint's step the run started at; 0 for a new one.
        metrics: the last step's figures; empty if there was nothing left to do.
        state: the variables as the run left them.
    """

    step: int
    finished: bool
    resumed_from: int
    metrics: dict[str, float]
    state: TrainingState = dataclasses.field(repr=False)


def train(
    model: Any,
    objective: Objective,
    batches: BatchSource,
    config: TrainingConfig,
    run_directory: RunDirectory,
    evaluate: Callable[[], Mapping[str, float]] | None = None,
    devices: Devices | None = None,
    settings: Mapping[str, Any] | None = None,
    take_over: Callable[[TrainingState], int] | None = None,
    report: Callable[[str], None] = lambda _line: None,
) -> TrainingResult:
    """Trains a model from the newest checkpoint of the run, or from its present weights.

    Args:
        model: a Keras model, built in `devices.strategy.scope()`.
        objective: what to minimise.
        batches: the data, a function of the step.
        config: how.
        run_directory: where checkpoints and figures go.
        evaluate: measures the model on held-out data, every `eval_steps` steps.
        devices: where to compute; by default what `config` names.
        settings: further settings that a resumed run must have the same (the model, the data).
        take_over: fills the state of a run that has no checkpoint yet from elsewhere, and gives
            the steps done there.
        report: is told in a line what is not an error (a checkpoint that cannot be read).

    Returns:
        How it ended: finished, or stopped by SIGTERM or at `stop_after_step`.

    Raises:
        UserError: the loss is no number, the checkpoint was made with other settings, or a
            checkpoint cannot be written.
    """
    devices = devices or make_devices(config)
    state = TrainingState(model, config, devices)
    settings = {**config.mathematics(), **(settings or {})}
    checkpoints = Checkpoints(
        run_directory.checkpoints, state.variables(), config.keep_checkpoint_max, devices.is_chief
    )
    start = _restore(checkpoints, settings, config, run_directory, report)
    if start is None:
        start = take_over(state) if take_over else 0
    end = min(config.num_train_steps, config.stop_after_step or config.num_train_steps)
    step = TrainingStep(model, objective, state.optimizer, state.loss_scale, devices, config)
    rate = learning_rate_schedule(
        config.schedule, config.learning_rate, config.num_train_steps, config.num_warmup_steps
    )
    done, metrics = start, {}
    with (
        prefetched(_inputs(step, batches, config, rate, start, end)) as inputs,
        Watch(run_directory, config, start, devices.is_chief) as watch,
        on_sigterm() as stop,
    ):
        for count, features, numbers in inputs:
            rows = step.run(features, numbers, stop.requested)
            for row in rows:
                done += 1
                metrics = step.metrics(row)
                check_finite(done, metrics, config.batch_size, state.loss_scale.dynamic)
                if watch.is_logged(done):
                    watch.step(done, metrics, rate(done - 1))
            watch.advance(count, metrics)
            if _is_due(done, config.eval_steps) and evaluate and done < config.num_train_steps:
                with watch.pause():
                    watch.evaluation(done, evaluate())
            stopping = metrics["stop_votes"] > 0  # all workers see the same votes
            if _is_due(done, config.save_checkpoints_steps) or done == end or stopping:
                checkpoints.save(done, settings)
            if stopping:
                break
        checkpoints.wait()
    return TrainingResult(done, done >= config.num_train_steps, start, metrics, state)


def _restore(
    checkpoints: Checkpoints,
    settings: Mapping[str, Any],
    config: TrainingConfig,
    run: RunDirectory,
    report: Callable[[str], None],
) -> int | None:
    """Restores the newest checkpoint; gives its step, or None where there is none.

    Raises:
        UserError: it was made with other settings.
    """

    def accept(description: Mapping[str, Any]) -> None:
        if not config.allow_changed_flags:
            check_settings(description["settings"], settings, str(run.path))

    description = checkpoints.restore_newest(report, accept)
    return description["step"] if description else None


def _inputs(
    step: TrainingStep,
    batches: BatchSource,
    config: TrainingConfig,
    rate: Callable[[int], float],
    start: int,
    end: int,
) -> Iterator[tuple[int, Any, Any]]:
    """The inputs of each compiled call: how many steps, the replicas' features, the numbers."""
    stream = batches.batches_from(start)
    stops = (config.save_checkpoints_steps, config.eval_steps)
    for count in chunk_lengths(start, end, config.iterations_per_loop, stops):
        chunk = [next(stream) for _ in range(count)]
        rates = [rate(done) for done in range(start, start + count)]
        yield count, *step.prepare(chunk, start, rates)
        start += count


def _is_due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0
