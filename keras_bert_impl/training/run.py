"""A run while it goes on, and the interface of everything that happens in it now and then."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from keras_bert_impl.interrupts import Stops
from keras_bert_impl.training.batches import PhasedBatches
from keras_bert_impl.training.checkpoints import Checkpoints
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.metric_writers import MetricWriter
from keras_bert_impl.training.run_directory import RunDirectory
from keras_bert_impl.training.state import TrainingState
from keras_bert_impl.training.step import Chunk
from keras_bert_impl.training.time_budget import TimeBudget


@dataclasses.dataclass
class Run:
    """A run while it goes on: what the loop tells its hooks, and what they may ask of it.

    Hooks may set `stopping` (after the present call, to be continued), `ended_early` (the run is
    finished before its last step) and `wants_save` (after the next call). What they keep in `kept`,
    JSON values by the hook's key, is saved with every checkpoint, as `settings` are, which a
    resumed run must have the same.
    """

    config: TrainingConfig
    directory: RunDirectory
    state: TrainingState
    batches: PhasedBatches
    checkpoints: Checkpoints
    settings: Mapping[str, Any]
    writer: MetricWriter  # writes nothing in all workers but the first
    log: Callable[[str], None]  # gets a line that a person should read
    first_step: int  # the steps done when this process began
    last_step: int  # those done when it shall end
    chunk: Chunk | None = None  # the inputs of the present compiled call
    compiles: bool = False  # whether that call may compile: its inputs have a new shape
    metrics: Mapping[str, float] = dataclasses.field(default_factory=dict)  # of the last step
    stop: Stops = dataclasses.field(default_factory=lambda: Stops(saves=True))
    stopping: bool = False
    ended_early: bool = False
    wants_save: bool = False
    kept: dict[str, Any] = dataclasses.field(default_factory=dict)
    paused_seconds: float = 0.0  # not spent on steps, and part of no rate
    budget: TimeBudget | None = None  # of a run that ends by the clock

    @property
    def step(self) -> int:
        """The steps done; inside of `after_step`, the number of that step."""
        return self.state.step

    @property
    def goal(self) -> int:
        """The last step of the whole run; a run that ends by the clock knows it at its end."""
        return self.budget.kept["goal"] if self.budget else self.config.num_train_steps

    @property
    def position(self) -> float:
        """How far the run is in what its schedule runs over: steps, or seconds."""
        return self.budget.share() * self.config.length if self.budget else self.step

    def so_far(self) -> str:
        """The steps done, and of how many, or after how many hours."""
        if self.budget:
            return f"{self.step:,} after {self.budget.in_words()}"
        return f"{self.step:,} of {self.config.num_train_steps:,}"

    @property
    def is_chief(self) -> bool:
        """Whether this process writes files."""
        return self.state.devices.is_chief

    @property
    def is_alone(self) -> bool:
        """Whether no other worker must agree before this one does something else."""
        return self.state.devices.workers == 1

    @property
    def is_logged(self) -> bool:
        """Whether the figures of the present step are logged."""
        return self.is_due(self.config.steps_between_logs) or self.step == self.goal

    def is_due(self, every: int) -> bool:
        """Whether the present step is a multiple of `every`; 0 is never."""
        return every > 0 and self.step % every == 0

    def stop_requested(self) -> bool:
        """Whether to stop now.

        All workers see the same votes; one that is alone need not wait for those of the next step.
        """
        voted = self.metrics.get("stop_votes", 0.0) > 0
        if voted:
            self.stop.note()  # the signal may have reached another worker only
        return voted or (self.is_alone and self.stop.requested)

    def save(self, as_best: bool = False) -> None:
        """Saves a checkpoint of the present step, unless there is one, or the best so far."""
        if self.budget:
            self.budget.kept["save"] = self.checkpoints.seconds or self.budget.kept["save"]
            self.kept["budget"] = {**self.budget.kept, "spent": self.budget.spent()}
        best = self.directory.best_checkpoint if as_best else None
        self.checkpoints.save(self.step, self.settings, self.kept, not as_best, best)

    def where(self, step: int) -> str:
        """Names the examples of the batch after so many steps, for a person."""
        if not (self.config.batch_ramp and self.chunk):
            return self.batches.where(step)
        each = self.chunk.examples // self.batches.batch_size
        end = self.chunk.first_step + len(self.chunk.learning_rates)
        first = self.chunk.read - (end - step) * each
        return ", ".join(self.batches.where(one) for one in range(first, first + each))


class Hook:
    """Something that happens now and then while a run goes on. Each method may be left out.

    A call is `iterations_per_loop` steps or fewer in one compiled function; it ends at every step
    where a checkpoint or an evaluation is due. An error in a hook ends the run. What a hook must
    remember across a resume it keeps in `Run.kept`.

    Example:
        >>> class Shout(Hook):
        ...     def after_call(self, run):
        ...         if run.is_due(1000):
        ...             run.log(f"{run.step} steps!")
    """

    def begin(self, run: Run) -> None:
        """Called once, before the first step, when the variables are restored."""

    def before_call(self, run: Run) -> None:
        """Called before each compiled call."""

    def after_step(self, run: Run) -> None:
        """Called after each step, with its figures in `run.metrics`."""

    def after_call(self, run: Run) -> None:
        """Called after each compiled call; the variables are those of `run.step`."""

    def end(self, run: Run) -> None:
        """Called once, when all steps are done or the run was stopped in good order."""

    def close(self, run: Run) -> None:
        """Called once, whatever ended the run, also an error; no checkpoint is being written."""
