"""The training loop."""

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from keras_bert_impl.optimizers.schedules import learning_rate_schedule
from keras_bert_impl.training.batches import BatchSource
from keras_bert_impl.training.checkpoints import Checkpoints, Save
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.inputs import chunks
from keras_bert_impl.training.objective import Objective
from keras_bert_impl.training.prefetch import prefetched
from keras_bert_impl.training.profiler import Profiler
from keras_bert_impl.training.resume import check_settings
from keras_bert_impl.training.run_directory import RunDirectory
from keras_bert_impl.training.state import TrainingState
from keras_bert_impl.training.step import TrainingStep
from keras_bert_impl.training.stop_signal import on_sigterm
from keras_bert_impl.training.strategy import Devices, present_devices
from keras_bert_impl.training.watch import Expectations, Watch


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
    rate: Callable[[int], float] | None = None,
    expectations: Expectations | None = None,
    report: Callable[[str], None] = lambda _line: None,
) -> TrainingResult:
    """Trains a model from the newest checkpoint of the run, or from its present weights.

    Args:
        model: a Keras model, built in the scope of the strategy of `devices`.
        objective: what to minimise.
        batches: the data, a function of the step.
        config: how.
        run_directory: where checkpoints and figures go.
        evaluate: measures the model on held-out data, every `eval_steps` steps.
        devices: where to compute, from `make_devices`; by default the present strategy's.
        settings: further settings that a resumed run must have the same (the model, the data).
        take_over: fills the state of a run that has no checkpoint yet from elsewhere, and gives
            the steps done there.
        rate: the learning rate by the steps done; by default `config`'s schedule.
        expectations: what the run's figures are compared with.
        report: is told in a line what is not an error (a checkpoint that cannot be read).

    Returns:
        How it ended: finished, or stopped by SIGTERM or at `stop_after_step`.

    Raises:
        UserError: the loss is no number, the checkpoint was made with other settings, or a
            checkpoint cannot be written.
    """
    devices = devices or present_devices(config)
    state = TrainingState(model, config, devices)
    settings = {**config.mathematics(), **(settings or {})}
    saves: list[Save] = []
    checkpoints = Checkpoints(
        run_directory.checkpoints,
        state.variables(),
        config.keep_checkpoint_max,
        devices.is_chief,
        saves.append,
    )
    start = _restore(checkpoints, settings, config, run_directory, report)
    if start is None:
        start = take_over(state) if take_over else 0
    end = min(config.num_train_steps, config.stop_after_step or config.num_train_steps)
    step = TrainingStep(model, objective, state.optimizer, state.loss_scale, devices, config)
    profiler = Profiler(config.profile_steps if devices.is_chief else None, run_directory.events)
    done, metrics = start, {}
    with (
        prefetched(chunks(step, batches, config, rate or _rate(config), start, end)) as inputs,
        Watch(
            run_directory,
            config,
            start,
            devices.is_chief,
            expectations,
            report,
            getattr(batches, "where", None),
        ) as watch,
        on_sigterm() as stop,
        contextlib.closing(profiler),
        checkpoints,
    ):
        for chunk in inputs:
            profiler.before(done)
            for row in step.run(chunk.features, chunk.numbers, stop.requested):
                done += 1
                metrics = step.metrics(row)
                watch.step(done, metrics, chunk)
            watch.advance(done, metrics)
            profiler.after(done)
            best = None
            if evaluate and _is_due(done, config.eval_steps):
                with watch.pause():
                    results = evaluate()
                best = run_directory.best_checkpoint if results["loss"] < watch.best_loss else None
                watch.evaluation(done, results)
            stopping = metrics["stop_votes"] > 0  # all workers see the same votes
            due = _is_due(done, config.save_checkpoints_steps) or done == end or stopping
            if due or best:
                checkpoints.save(done, settings, due, best)
            watch.saves(saves)
            if stopping:
                break
        checkpoints.wait()
        watch.saves(saves)
        watch.end(done, metrics)
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


def _rate(config: TrainingConfig) -> Callable[[int], float]:
    return learning_rate_schedule(
        config.schedule, config.learning_rate, config.num_train_steps, config.num_warmup_steps
    )


def _is_due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0
