"""The hours of a run that ends on time."""

import collections
import contextlib
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from keras_bert_impl.options import MOST_COUNTED

# Seconds for the learning curve, the card and the end of the process. On a busy machine they are
# more: a share of what the start took, up to one of the hours.
_CLOSING, _CLOSING_OF_START, _MOST_CLOSING = 3.0, 0.4, 0.01
_SAVES_AT_END = 1.5  # a checkpoint and, without the moments, the model
_TURNS = 4  # so often a run is evaluated, the last time at its end
_CHEAP = 0.05  # of the hours; what costs more is done once before the end, to see what it costs
_LONG_CALL = 0.01  # of the hours: the run ends half a call too late, or too early

_begun: list[float] = []


@contextlib.contextmanager
def counting_hours() -> Iterator[None]:
    """Inside the block the hours of a run count from the beginning of the block."""
    _begun.append(time.monotonic())
    try:
        yield
    finally:
        _begun.pop()


class TimeBudget:
    """How much of a run's hours is spent, and which call of the training step is the last.

    What comes after the last step is no part of the hours of training: it is expected to take as
    long as the last save and the last evaluation did. `kept` is what checkpoints keep, from which a
    later process goes on: the last step (`goal`) is known when its call begins.
    """

    def __init__(
        self, hours: float, kept: Mapping[str, Any], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._hours, self._clock = hours, clock
        new = {"spent": 0.0, "idle": 0.0, "save": 0.0, "turn": 0, "examples": 0}
        new |= {"evaluation": 0.0, "ending": 0.0}
        self.kept = {**new, "goal": MOST_COUNTED, **kept}
        began = _begun[-1] if _begun else clock()
        self._start = began - self.kept["spent"]
        usual = min(_CLOSING_OF_START * (clock() - began), _MOST_CLOSING * hours * 3600)
        self._closing = max(_CLOSING, usual)
        self._steps, self._usual = collections.deque[float](maxlen=5), 0.0  # seconds of a step
        self._has_called = False
        # What was spent when the start, or a call that is compiled, began; None outside of them.
        self._idle_from: float | None = self.kept["spent"]
        if kept.get("hours") != hours:  # goal and turns are those of other hours
            # Before its first evaluation a run has to learn soon what one takes.
            turn = int(_TURNS * self.share()) if self.kept["ending"] else 0
            self.kept |= {"hours": hours, "goal": MOST_COUNTED, "turn": turn}

    def spent(self) -> float:
        """The seconds since the start, those of earlier processes up to the checkpoint included."""
        return self._clock() - self._start

    def in_words(self) -> str:
        """What is spent of the hours."""
        return f"{self.spent() / 3600:.3g} of {self._hours:g} hours"

    def _for_training(self) -> float:
        after = _SAVES_AT_END * self.kept["save"] + self.kept["ending"] + self._closing
        return max(self._hours * 3600 - after, 1e-3)

    def share(self) -> float:
        """The share that is spent of the hours of training; 1 at the end.

        The start and what is compiled on the way are no part of them: a rate that had risen
        meanwhile would meet moments that are nearly empty.
        """
        spent, began = self.spent(), self._idle_from  # read once: the reader's thread asks, too
        idle = self.kept["idle"] + (0.0 if began is None else spent - began)
        return min(1.0, (spent - idle) / max(self._for_training() - idle, 1e-3))

    def steps_per_call(self, most: int) -> int:
        """How many steps the next call takes: `most` where they are known to take a short time."""
        seconds = most * self._usual
        return most if 0.0 < seconds <= _LONG_CALL * self._hours * 3600 else 1

    def begin_call(self, done: int, steps: int, compiles: bool = False) -> None:
        """Notes that a call of so many `steps` begins; the last one ends nearest to the end."""
        self._call_began = self.spent()
        if compiles and self._idle_from is None:
            self._idle_from = self._call_began
        if self._for_training() - self._call_began < 1.5 * steps * self._usual:
            self.kept["goal"] = done + steps

    def end_call(self, steps: int, examples: int) -> None:
        """Notes that the call is done, with so many examples."""
        # Before any other is known the second call is the measure, though it may compile something.
        if self._idle_from is None or (self._has_called and not self._steps):
            self._steps.append((self.spent() - self._call_began) / steps)
            self._usual = statistics.median(self._steps)  # some of the last few had to wait
        if self._idle_from is not None:
            idle = self.spent() - self._idle_from - steps * self._usual
            self.kept["idle"] += max(0.0, idle)
            self._idle_from = None
        self._has_called = True
        self.kept["examples"] += examples

    def is_evaluation_due(self, each_turn: bool) -> bool:
        """Whether it is time for an evaluation: once, to see what it takes, or `each_turn`."""
        cheap = self.kept["evaluation"] < _CHEAP * self._hours * 3600
        wanted = not self.kept["ending"] or (each_turn and cheap)
        return wanted and self.kept["turn"] < int(_TURNS * self.share()) < _TURNS

    def evaluated(self, seconds: float, at_end: float) -> None:
        """Notes what an evaluation took, and that the end takes `at_end` times as long."""
        self.kept |= {"evaluation": seconds, "ending": seconds * at_end}
        self.kept["turn"] = int(_TURNS * self.share())
