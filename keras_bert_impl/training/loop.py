"""The training loop."""

import contextlib
import dataclasses
import itertools
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keras_bert_impl.interrupts import on_stop
from keras_bert_impl.optimizers.schedules import WarmupSchedule
from keras_bert_impl.options import default_settings, made_settings
from keras_bert_impl.training.batches import Phase, PhasedBatches, prefetched
from keras_bert_impl.training.checkpoints import Checkpoints, check_settings
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.hooks import check_finite, standard_hooks
from keras_bert_impl.training.metric_writers import MetricWriter
from keras_bert_impl.training.objectives import Objective
from keras_bert_impl.training.run import Hook, Run
from keras_bert_impl.training.run_directory import RunDirectory
from keras_bert_impl.training.state import TrainingState
from keras_bert_impl.training.step import chunks, make_step
from keras_bert_impl.training.strategy import check_same_step

_LOGGER = logging.getLogger(__name__)

_BATCHES_AHEAD = 6


@dataclasses.dataclass(frozen=True)
class TrainingResult:
    """How a run ended.

    It is `finished` where that are all of its steps, or training ended early; otherwise the same
    call continues. `best_step` is there where the model has the weights of that evaluation.
    """

    step: int  # those done in all
    finished: bool
    resumed_from: int  # 0 of a new run
    metrics: Mapping[str, float]  # of the last step; empty if nothing was left to do
    state: TrainingState = dataclasses.field(repr=False)
    best_step: int | None = None

    @property
    def is_new(self) -> bool:
        """Whether there was anything left to do."""
        return self.step > self.resumed_from

    @property
    def weights_step(self) -> int:
        """The step that the model's weights are of."""
        return self.step if self.best_step is None else self.best_step


def train(
    state: TrainingState,
    objective: Objective,
    phases: Sequence[Phase],
    config: TrainingConfig,
    directory: RunDirectory,
    settings: Mapping[str, Any] | None = None,
    hooks: Sequence[Hook] | None = None,
    log: Callable[[str], None] = _LOGGER.warning,
    options: type = TrainingConfig,
) -> TrainingResult:
    """Trains a model from the newest checkpoint of the run, or from its present weights.

    The last phase goes on to the end of the run, if no signal and no `stop_after_step` ends it.
    """
    run = _start(state, phases, config, directory, settings or {}, options, log)
    open_features = frozenset[str]().union(*(one.batches.open_features for one in phases))
    step = make_step(state, objective, config, open_features)
    hooks = standard_hooks() if hooks is None else hooks

    def tell(event: str) -> None:
        for hook in hooks:
            getattr(hook, event)(run)

    # One schedule over all phases, scaled by the peak of each.
    schedule = WarmupSchedule(1.0, config.num_train_steps, config.num_warmup_steps, config.schedule)

    def rate(done: int) -> float:
        return run.batches.phase_of(done)[0].learning_rate * schedule.at(done)

    inputs = chunks(step, run.batches, config, rate, run.step, run.last_step)
    with (
        on_stop() as run.stop,
        prefetched(inputs, _calls_ahead(config.iterations_per_loop)) as ready,
        run.writer.open(run.first_step),
        contextlib.ExitStack() as closing,
        run.checkpoints,
    ):
        for hook in hooks:  # all of them, though another one fails
            closing.callback(hook.close, run)
        if 0 < run.first_step < config.num_train_steps:
            goal = f"{config.num_train_steps:,}"
            _LOGGER.info("resuming from step %s of %s", f"{run.first_step:,}", goal)
        run.stopping = run.stop_requested()
        tell("begin")
        while not (run.stopping or run.ended_early) and (chunk := next(ready, None)):
            run.chunk = chunk
            tell("before_call")
            asked = {"stop": run.stop.requested, "save": run.wants_save}
            for row in step.run(chunk.features, chunk.numbers, **asked):
                state.step, run.metrics = state.step + 1, step.metrics(row)
                tell("after_step")
            run.stopping = run.stop_requested()
            tell("after_call")
        tell("end")
        run.checkpoints.wait()  # whichever hook saved last: a failure ends the run as one
    finished = (run.step >= config.num_train_steps or run.ended_early) and not run.stopping
    return TrainingResult(run.step, finished, run.first_step, run.metrics, state)


def _calls_ahead(steps_per_call: int) -> int:
    """How many calls' inputs wait: two, or as many as hold six batches.

    A reader that is late for a moment (the next shard) then stops no step, for a few megabytes a
    batch. Long calls are large and give the reader time enough, so two of them do.

    Example:
        >>> _calls_ahead(1), _calls_ahead(4), _calls_ahead(100)
        (6, 2, 2)
    """
    return max(2, math.ceil(_BATCHES_AHEAD / steps_per_call))


def _start(
    state: TrainingState,
    phases: Sequence[Phase],
    config: TrainingConfig,
    directory: RunDirectory,
    settings: Mapping[str, Any],
    options: type,
    log: Callable[[str], None],
) -> Run:
    """Restores the newest checkpoint, if there is one, with what the hooks kept in it."""
    devices = state.devices
    checkpoints = Checkpoints(
        directory.checkpoints, state.variables(), config.keep_checkpoint_max, devices.is_chief, log
    )
    settings = {**config.mathematics(), **settings}
    defaults = {**default_settings(TrainingConfig), **default_settings(options)}

    def accept(description: Mapping[str, Any]) -> None:
        if not config.allow_changed_flags:
            before = description["settings"]
            check_settings(before, settings, str(directory.path), defaults, made_settings(options))

    description = checkpoints.restore_newest(accept) or {}
    if description:
        state.step = description["step"]
        if description["settings"].get("precision") != config.precision:
            state.loss_scale.reset()
        if not description["settings"].get("ema_decay"):
            state.start_averages()  # the run had none so far
    check_same_step(devices, state.step)
    return Run(
        config=config,
        directory=directory,
        state=state,
        batches=PhasedBatches(phases),
        checkpoints=checkpoints,
        settings=settings,
        writer=MetricWriter(directory, devices.is_chief),
        log=log,
        first_step=state.step,
        last_step=min(config.num_train_steps, config.stop_after_step or config.num_train_steps),
        kept=dict(description.get("kept", {})),
    )


def rehearse(
    state: TrainingState, objective: Objective, phases: Sequence[Phase], config: TrainingConfig
) -> list[dict[str, float]]:
    """The figures of one step of each phase, at the beginning of its data, with learning rate 0."""
    step = make_step(state, objective, config)
    figures = []
    for phase in phases:
        batches = list(itertools.islice(phase.batches.batches_from(0), config.iterations_per_loop))
        inputs = step.prepare(batches, 0, [0.0] * len(batches))
        metrics = step.metrics(step.run(*inputs)[-1])
        check_finite(1, metrics, config.precision == "float16", phase.batches.where)
        figures.append(metrics)
    return figures
