"""The training loop."""

import contextlib
import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keras_bert_impl.optimizers.schedules import learning_rate_schedule
from keras_bert_impl.training.batches import BatchSource, prefetched
from keras_bert_impl.training.checkpoints import Checkpoints, Save, check_settings, read_description
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.hooks import Expectations, Profiler, Watch, check_finite
from keras_bert_impl.training.objectives import Objective
from keras_bert_impl.training.phases import Phase
from keras_bert_impl.training.run_directory import RunDirectory
from keras_bert_impl.training.state import TrainingState
from keras_bert_impl.training.step import TrainingStep, chunks
from keras_bert_impl.training.stop_signal import StopRequestedError, StopSignal, on_sigterm
from keras_bert_impl.training.strategy import Devices, check_same_step, present_devices


@dataclasses.dataclass(frozen=True)
class TrainingResult:
    """How a run ended.

    Attributes:
        step: optimizer steps done in all.
        finished: whether that is all of them, and nothing was asked to stop; otherwise the same
            call continues.
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
    accepted: Callable[[], None] = lambda: None,
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
        accepted: is called before the first step, when the run's checkpoint fits the settings.

    Returns:
        How it ended: finished, or stopped by SIGTERM or at `stop_after_step`.

    Raises:
        UserError: the loss is no number, the checkpoint was made with other settings, a
            checkpoint cannot be written, or workers do not see the same checkpoints.
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
        report,
    )
    start = _restore(checkpoints, state, settings, config, run_directory, report)
    if start is None:
        start = take_over(state) if take_over else 0
    check_same_step(devices, start)
    accepted()
    end = min(config.num_train_steps, config.stop_after_step or config.num_train_steps)
    step = TrainingStep(model, objective, state.optimizer, state.loss_scale, devices, config)
    profiler = Profiler(config.profile_steps if devices.is_chief else None, run_directory.events)
    done, metrics, alone, stopping = start, {}, devices.workers == 1, False
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
        contextlib.ExitStack() as at_the_end,
        checkpoints,
    ):
        at_the_end.callback(watch.saves, saves)  # also of a run that an error ends
        evaluations = _Evaluations(
            evaluate, config, settings, run_directory, checkpoints, watch, stop, alone
        )
        stopping = (alone and stop.requested) or not evaluations.catch_up(done)
        for chunk in inputs if not stopping else ():
            profiler.before(done)
            for row in step.run(chunk.features, chunk.numbers, stop.requested):
                done += 1
                metrics = step.metrics(row)
                watch.step(done, metrics, chunk)
            watch.advance(done, metrics)
            profiler.after(done)
            # All workers see the same votes; who is alone need not wait for the next step's.
            stopping = metrics["stop_votes"] > 0 or (alone and stop.requested)
            if stopping or done == end or _is_due(done, config.save_checkpoints_steps):
                checkpoints.save(done, settings)  # first: an evaluation may take minutes
            if not stopping and not evaluations.after(done):
                stopping = True
                checkpoints.save(done, settings)
            watch.saves(saves)
            if stopping:
                break
        checkpoints.wait()
        watch.end(done, metrics)
    finished = done >= config.num_train_steps and not stopping
    return TrainingResult(done, finished, start, metrics, state)


@dataclasses.dataclass(frozen=True)
class _Evaluations:
    """The held-out evaluations of a run: when they are due, and what becomes of their figures."""

    evaluate: Callable[[], Mapping[str, float]] | None
    config: TrainingConfig
    settings: Mapping[str, Any]
    run_directory: RunDirectory
    checkpoints: Checkpoints
    watch: Watch
    stop: StopSignal
    alone: bool  # one worker may break off by itself

    def after(self, step: int) -> bool:
        """Evaluates where it is due; False if a stop interrupted it."""
        if not self.evaluate or not self._is_due(step):
            return True
        try:
            with self.watch.pause(), self.stop.interrupting(self.alone):
                results = self.evaluate()
        except StopRequestedError:
            return False
        if results["loss"] < self._best_loss():
            self._keep_best(step)
        self.watch.evaluation(step, results)
        return True

    def catch_up(self, step: int) -> bool:
        """Does for the step that a run resumes from what a kill came before; False if stopped."""
        if not self.evaluate or not step or not self._is_due(step):
            return True
        losses = self.watch.evaluated
        if step not in losses:
            return self.after(step)
        if losses[step] < self._best_loss():
            self._keep_best(step)
        return True

    def _is_due(self, step: int) -> bool:
        every = self.config.eval_steps
        return _is_due(step, every) or (every > 0 and step == self.config.num_train_steps)

    def _keep_best(self, step: int) -> None:
        best = self.run_directory.best_checkpoint
        self.checkpoints.save(step, self.settings, regular=False, best=best)

    def _best_loss(self) -> float:
        """The loss of the checkpoint that is there as the best: writing a better one may fail."""
        self.checkpoints.settle()
        try:
            step = int(read_description(self.run_directory.best_checkpoint)["step"])
        except (OSError, ValueError, LookupError):
            return math.inf
        return self.watch.evaluated.get(step, math.inf)


def _restore(
    checkpoints: Checkpoints,
    state: TrainingState,
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
    if description is None:
        return None
    if description["settings"].get("precision") != config.precision:
        state.loss_scale.reset()
    return description["step"]


def _rate(config: TrainingConfig) -> Callable[[int], float]:
    return learning_rate_schedule(
        config.schedule, config.learning_rate, config.num_train_steps, config.num_warmup_steps
    )


def _is_due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0


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
