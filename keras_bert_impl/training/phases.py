"""A run in phases: short sequences first, long ones at the end."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence

from keras_bert_impl.training.batches import Batch, BatchSource
from keras_bert_impl.training.config import TrainingConfig


@dataclasses.dataclass(frozen=True)
class Phase:
    """A stretch of a run.

    Attributes:
        batches: its data; its own step 0 is the phase's first step.
        num_steps: how long it lasts.
        learning_rate: the peak that the run's schedule is scaled by while it lasts.
    """

    batches: BatchSource
    num_steps: int
    learning_rate: float


def one_phase(batches: BatchSource, config: TrainingConfig) -> list[Phase]:
    """A run of one phase, with the steps and the learning rate of its configuration."""
    return [Phase(batches, config.num_train_steps, config.learning_rate)]


class PhasedBatches:
    """The batches of all phases one after the other: again a function of the step."""

    def __init__(self, phases: Sequence[Phase]) -> None:
        self._phases = list(phases)
        self.batch_size = phases[0].batches.batch_size
        self.num_workers = phases[0].batches.num_workers

    @property
    def boundaries(self) -> tuple[int, ...]:
        """The steps at which a phase ends."""
        return tuple(itertools.accumulate(phase.num_steps for phase in self._phases))

    def batches_from(self, step: int) -> Iterator[Batch]:
        """Gives the batches of steps `step`, `step + 1`, ...; the last phase never ends."""
        for number, phase in enumerate(self._phases):
            last = number == len(self._phases) - 1
            if step < phase.num_steps or last:
                stream = phase.batches.batches_from(max(step, 0))
                yield from stream if last else itertools.islice(stream, phase.num_steps - step)
            step = max(step - phase.num_steps, 0)

    def batch_size_at(self, step: int) -> int:
        """The rows of one step's whole batch."""
        return self._phase_of(step)[0].batches.batch_size

    def where(self, step: int) -> str:
        """Names the examples of one step's batch."""
        phase, step = self._phase_of(step)
        return phase.batches.where(step)

    def _phase_of(self, step: int) -> tuple[Phase, int]:
        """The phase that a step lies in, and the step's number in it."""
        *earlier, last = self._phases
        for phase in earlier:
            if step < phase.num_steps:
                return phase, step
            step -= phase.num_steps
        return last, step


def phased_work(steps: Sequence[int], work_a_step: Sequence[float]) -> Callable[[float], float]:
    """Adds up what the steps of a run cost, where a phase's steps cost more than another's.

    Returns:
        The work of the first so many steps.

    Example:
        >>> work = phased_work([8, 2], [1.0, 4.0])
        >>> work(4), work(9)
        (4.0, 12.0)
    """
    ends = [0, *itertools.accumulate(steps)]

    def work(done: float) -> float:
        return sum(
            cost * min(max(done - first, 0.0), last - first)
            for first, last, cost in zip(ends, ends[1:], work_a_step, strict=False)
        )

    return work


def phased_rate(
    phases: Sequence[Phase], schedule: Callable[[int], float]
) -> Callable[[int], float]:
    """Scales a schedule of peak 1 by the peak of the phase that a step lies in.

    Example:
        >>> phases = [Phase(None, 8, 1.0), Phase(None, 2, 0.5)]
        >>> rate = phased_rate(phases, lambda step: 1.0)
        >>> rate(7), rate(8)
        (1.0, 0.5)
    """
    ends = list(itertools.accumulate(phase.num_steps for phase in phases))

    def rate(step: int) -> float:
        number = next((n for n, end in enumerate(ends) if step < end), len(ends) - 1)
        return phases[number].learning_rate * schedule(step)

    return rate
