"""What is looked at while a run goes on: figures, rates, and signs that it goes wrong."""

import contextlib
import math
import time
from collections.abc import Mapping
from typing import Any

from keras_bert_impl.errors import UserError
from keras_bert_impl.progress import Progress
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.metric_files import JsonLines, TensorBoard
from keras_bert_impl.training.run_directory import RunDirectory


class Watch:
    """Logs a run's steps and evaluations.

    Args:
        run: where the files go.
        config: how often; sizes for the rates.
        first_step: the step the run resumes from.
        writes: False for workers that only compute.
    """

    def __init__(
        self, run: RunDirectory, config: TrainingConfig, first_step: int, writes: bool
    ) -> None:
        self._config = config
        self._files = contextlib.ExitStack()
        self._metrics = self._evaluations = self._board = None
        if writes:
            self._metrics = self._files.enter_context(JsonLines(run.metrics, first_step))
            self._evaluations = self._files.enter_context(JsonLines(run.evaluations, first_step))
            self._board = self._files.enter_context(TensorBoard(run.events, first_step))
        self._progress = Progress("train", config.num_train_steps, "steps")
        self._progress.resume_from(first_step)
        self._rate_step, self._rate_time = first_step, time.monotonic()

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.close()
        self._files.close()

    def is_logged(self, step: int) -> bool:
        """Whether this step's figures are written."""
        return step % self._config.log_steps == 0 or step == self._config.num_train_steps

    def step(self, step: int, metrics: Mapping[str, float], learning_rate: float) -> None:
        """Writes one step's figures."""
        now = time.monotonic()
        rate = (step - self._rate_step) * self._config.batch_size / max(now - self._rate_time, 1e-9)
        self._rate_step, self._rate_time = step, now
        line = _ordered(metrics, learning_rate, rate)
        if self._metrics and self._board:
            self._metrics.write({"step": step, **line})
            self._board.write(step, line)

    def advance(self, steps: int, metrics: Mapping[str, float]) -> None:
        """Moves the progress line."""
        self._progress.advance(steps, note=f"loss {metrics['loss']:.4f}")

    def evaluation(self, step: int, results: Mapping[str, float]) -> None:
        """Writes one evaluation's figures; its time does not count against the rate."""
        if self._evaluations and self._board:
            self._evaluations.write({"step": step, **results})
            self._board.write(step, results, prefix="eval")

    @contextlib.contextmanager
    def pause(self) -> Any:
        """Time spent inside the block does not enter the rates."""
        start = time.monotonic()
        yield
        self._rate_time += time.monotonic() - start


def _ordered(metrics: Mapping[str, float], learning_rate: float, rate: float) -> dict[str, float]:
    """The line of `metrics.jsonl`: losses first, then rates, then what else was measured."""
    losses = {name: value for name, value in metrics.items() if name.endswith("loss")}
    line = {
        **losses,
        "learning_rate": learning_rate,
        "gradient_norm": metrics["gradient_norm"],
        "examples_per_second": round(rate, 2),
    }
    others = {n: v for n, v in metrics.items() if n not in line and n != "stop_votes"}
    return {**line, **others}


def check_finite(step: int, metrics: Mapping[str, float], batch_size: int, scaled: bool) -> None:
    """Stops a run whose loss or gradient is no number.

    Args:
        step: the step, counted from 1.
        metrics: its figures.
        batch_size: to name the batch's places.
        scaled: in float16 an infinite gradient is only a step to skip.

    Raises:
        UserError: the loss, or (unless scaled) the gradient's norm, is not finite.

    Example:
        >>> check_finite(3, {"loss": 1.0, "gradient_norm": 2.0}, 8, scaled=False)
    """
    watched = ("loss",) if scaled else ("loss", "gradient_norm")
    for name in watched:
        if not math.isfinite(metrics[name]):
            first = (step - 1) * batch_size
            raise UserError(
                f"Step {step}: the {name.replace('_', ' ')} is {metrics[name]} (examples {first} "
                f"to {first + batch_size - 1} in the order of the run); try a smaller "
                "--learning_rate or a longer --num_warmup_steps; the last checkpoint is from "
                "before this step."
            )
