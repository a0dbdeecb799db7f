"""The figures of a logged step: means since the line before, and rates."""

import dataclasses
from collections.abc import Mapping

from keras_bert_impl.training.step import Chunk


@dataclasses.dataclass
class _Measured:
    """Gives the work done since the last reading."""

    steps: int = 0
    examples: int = 0
    tokens: int = 0
    seconds: float = 0.0
    compiling: bool = False


class Rates:
    """Counts steps and what they take; gives rates since the last reading.

    The steps of one compiled call share its time. The first call is spent on compiling: its time
    enters the lines of its own steps only.
    """

    def __init__(self) -> None:
        self._since, self._seconds_a_step = 0.0, 0.0
        self._calls, self._measured = 0, _Measured()

    def start(self, now: float) -> None:
        """Starts the clock.

        Args:
            now: seconds of any clock.
        """
        self._since = now

    def count(self, step: int, chunk: Chunk, now: float) -> None:
        """Counts a step whose figures are there.

        Args:
            now: seconds of the clock of `start`.
        """
        if step == chunk.first_step + 1:
            self._begin_call(chunk, now)
        measured = self._measured
        measured.steps += 1
        measured.examples += chunk.examples
        measured.tokens += chunk.tokens
        measured.seconds += self._seconds_a_step

    def _begin_call(self, chunk: Chunk, now: float) -> None:
        self._seconds_a_step = (now - self._since) / len(chunk.learning_rates)
        self._since = now
        self._calls += 1
        if self._calls == 1:
            self._measured = _Measured(compiling=True)
        elif self._measured.compiling:
            self._measured = _Measured()

    def read(self) -> dict[str, float]:
        """The rates of the steps since the last reading."""
        measured, self._measured = self._measured, _Measured()
        seconds = max(measured.seconds, 1e-9)
        rates = {"examples_per_second": round(measured.examples / seconds, 2)}
        if measured.tokens:
            rates["tokens_per_second"] = round(measured.tokens / seconds, 1)
        return rates


def log_line(
    metrics: Mapping[str, float], chunk: Chunk, step: int, rates: Mapping[str, float]
) -> dict[str, float]:
    """The figures of a logged step: losses first, then rates, then what else was measured."""
    line = {
        **{name: value for name, value in metrics.items() if name.endswith("loss")},
        "learning_rate": chunk.learning_rates[step - 1 - chunk.first_step],
        "gradient_norm": metrics["gradient_norm"],
        **rates,
    }
    others = {n: v for n, v in metrics.items() if n not in line and not n.endswith("_votes")}
    padding = {"padding_share": round(chunk.padding_share, 4)} if chunk.tokens else {}
    return {**line, **others, **padding}


class Means:
    """Adds up figures step by step; gives their means since the last reading.

    Example:
        >>> means = Means({"loss": [5.0, 2]})
        >>> means.add({"loss": 4.0})
        >>> means.read(), means.read()
        ({'loss': 3.0}, {})
    """

    def __init__(self, sums: dict[str, list[float]]) -> None:
        self._sums = sums

    def add(self, figures: Mapping[str, float]) -> None:
        """Counts the figures of one step."""
        for name, value in figures.items():
            total, count = self._sums.get(name, (0.0, 0))
            self._sums[name] = [total + value, count + 1]

    def read(self) -> dict[str, float]:
        """The means, which start anew."""
        means = {name: total / count for name, (total, count) in self._sums.items()}
        self._sums.clear()
        return means
