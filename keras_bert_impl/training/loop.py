"""The training loop."""

import contextlib
import dataclasses
import itertools
import logging
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from keras_bert_impl.interrupts import on_stop
from keras_bert_impl.optimizers.schedules import WarmupSchedule
from keras_bert_impl.options import default_settings, made_settings
from keras_bert_impl.training.batches import Phase, PhasedBatches, prefetched
from keras_bert_impl.training.checkpoints import Checkpoints, check_settings
from keras_bert_impl.training.config import TrainingConfig, former_lengths, with_later_end
from keras_bert_impl.training.hooks import check_finite, standard_hooks
from keras_bert_impl.training.metric_writers import MetricWriter
from keras_bert_impl.training.objectives import Objective
from keras_bert_impl.training.run import Hook, Run
from keras_bert_impl.training.run_directory import RunDirectory
from keras_bert_impl.training.state import TrainingState
from keras_bert_impl.training.step import Chunk, chunks, make_step
from keras_bert_impl.training.strategy import check_same_step
from keras_bert_impl.training.time_budget import TimeBudget

_LOGGER = logging.getLogger(__name__)

_BATCHES_AHEAD = 6
_FEW_STEPS = 10


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
    config.check_plateau()
    settings = {**config.mathematics(), **(settings or {})}
    run = _start(state, phases, config, directory, settings, options, log)
    config = run.config
    open_features = frozenset[str]().union(*(one.batches.open_features for one in phases))
    step = make_step(state, objective, config, open_features)
    hooks = standard_hooks() if hooks is None else hooks

    def tell(event: str) -> None:
        for hook in hooks:
            getattr(hook, event)(run)

    # One schedule over all phases, scaled by the peak of each.
    warmup = run.kept.get("warmup", config.warmup)  # where there is a later end: the former one
    schedule = WarmupSchedule(1.0, config.length, warmup, config.schedule, config.decay_share)

    def rate(done: int) -> float:
        # By the clock a call gets its rate when it begins, see `_begun`.
        now = run.position if run.budget else done
        return run.batches.phase_of(done)[0].learning_rate * schedule.at(now)

    def parts(done: int) -> int:
        return config.parts_at(run.position if run.budget else done)

    # A run that had no ramp so far has read whole batches.
    read = run.kept.get("read", run.step * config.accumulation_steps)
    ramp: dict[str, Any] = {"parts": parts, "read": read} if config.batch_ramp else {}
    known = set[Hashable]()
    longest: Callable[[int], int] = run.budget.steps_per_call if run.budget else int
    inputs = chunks(
        step, run.batches, config, rate, run.step, run.last_step, longest=longest, **ramp
    )
    with (
        on_stop() as run.stop,
        prefetched(inputs, _calls_ahead(config.iterations_per_loop)) as ready,
        run.writer.open(run.first_step),
        contextlib.ExitStack() as closing,
        run.checkpoints,
    ):
        for hook in hooks:  # all of them, though another one fails
            closing.callback(hook.close, run)
        if 0 < run.first_step < run.goal:
            _LOGGER.info("resuming from step %s", run.so_far())
        run.stopping = run.stop_requested()
        tell("begin")
        while not (run.stopping or run.ended_early or run.step >= run.last_step) and (
            given := next(ready, None)
        ):
            run.chunk = chunk = _begun(run, given, rate, known)
            tell("before_call")
            asked = {"stop": run.stop.requested, "save": run.wants_save}
            for row in step.run(chunk.features, chunk.numbers, **asked):
                state.step, run.metrics = state.step + 1, step.metrics(row)
                tell("after_step")
            _ended(run, chunk)
            run.stopping = run.stop_requested()
            tell("after_call")
        tell("end")
        run.checkpoints.wait()  # whichever hook saved last: a failure ends the run as one
    finished = (run.step >= run.goal or run.ended_early) and not run.stopping
    if run.budget and run.is_chief:
        _tell_of_hours(run, run.budget.kept["examples"], phases[0].epoch)
    return TrainingResult(run.step, finished, run.first_step, run.metrics, state)


def _tell_of_hours(run: Run, examples: int, epoch: int | None) -> None:
    epochs = f", {examples / epoch:.3g} epochs" if epoch else ""
    _LOGGER.info("trained steps: %s; examples: %s%s", run.so_far(), f"{examples:,}", epochs)
    if run.goal == run.step < _FEW_STEPS:
        _LOGGER.warning(
            "`train_hours=%g` is hardly more than the start takes: next to nothing is learned in "
            "steps as few as %d; give the run more hours",
            *(run.config.train_hours, run.step),
        )


def _begun(run: Run, chunk: Chunk, rate: Callable[[int], float], known: set[Hashable]) -> Chunk:
    """The inputs of a call that begins now; of a run with hours the clock says rate and end.

    `known` are the shapes of the calls before it.
    """
    steps = len(chunk.learning_rates)
    shapes = {(steps, shape) for shape in chunk.shapes}
    run.compiles = not shapes <= known
    known |= shapes
    if run.budget is None:
        return chunk
    run.budget.begin_call(run.step, steps, run.compiles)
    run.last_step = min(run.last_step, run.goal)
    return chunk.at_rate(rate(run.step))


def _ended(run: Run, chunk: Chunk) -> None:
    """Notes what a call has done."""
    if run.config.batch_ramp:
        run.kept["read"] = chunk.read
    if run.budget:
        steps = len(chunk.learning_rates)
        run.budget.end_call(steps, chunk.examples * steps)


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
    content = "init_checkpoint_content"  # older runs lack it
    start = {content: settings.get(content)}
    defaults = {**default_settings(TrainingConfig), **default_settings(options), **start}

    def accept(description: Mapping[str, Any]) -> None:
        before, kept = description["settings"], description.get("kept", {})
        later = with_later_end(before, settings)
        if later and kept.get("plateau", description["step"]) == description["step"]:
            kept |= {**former_lengths(before, _made(options, config)), **kept}
            kept.pop("plateau", None)
            before = later
        if not config.allow_changed_flags:
            check_settings(before, settings, str(directory.path), defaults, _made(options, config))

    plateau = checkpoints.step_to_go_back_to(lambda before: with_later_end(before, settings))
    description = checkpoints.restore_newest(accept, only=plateau) or {}
    if description:
        state.step = description["step"]
        if description["settings"].get("precision") != config.precision:
            state.loss_scale.reset()
        if not description["settings"].get("ema_decay"):
            state.start_averages()  # the run had none so far
    check_same_step(devices, state.step)  # all workers have read what is removed now
    if plateau is not None:
        checkpoints.forget_after(plateau)
    if devices.is_chief and state.step < (directory.finished_step() or 0):
        directory.forget_end()
    kept = dict(description.get("kept", {}))
    checkpoints.lasting = kept.get("plateau")
    budget = TimeBudget(config.train_hours, kept.get("budget", {})) if config.train_hours else None
    goal = budget.kept["goal"] if budget else config.num_train_steps
    if config.batch_ramp and "ramped_length" in kept:
        ramp = config.batch_ramp * kept["ramped_length"] / config.length
        config = dataclasses.replace(config, batch_ramp=min(1.0, ramp))
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
        last_step=min(goal, config.stop_after_step or goal),
        kept=kept,
        budget=budget,
    )


def _made(options: type, config: TrainingConfig) -> dict[str, str]:
    """What a job makes of options; one that the run reads itself, as its hours do, is a setting."""
    own = config.mathematics()
    return {name: made for name, made in made_settings(options).items() if own.get(name) is None}


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
