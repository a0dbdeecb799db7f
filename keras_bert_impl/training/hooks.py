"""What happens now and then while a run goes on: figures, rates, warnings, profiles."""

import contextlib
import dataclasses
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import tensorflow as tf

from keras_bert_impl.errors import UserError
from keras_bert_impl.progress import Progress
from keras_bert_impl.training.checkpoints import Save
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.metric_writers import JsonLines, TensorBoard, read_json_lines
from keras_bert_impl.training.run_directory import RunDirectory
from keras_bert_impl.training.step import Chunk

_LINES, _MARGIN = 20, 0.05


class Plateau:
    """Points out, once, that the masked-LM loss is stuck where guessing by frequency is.

    Every run passes this plateau; one that is still there long after the warm-up does not learn
    from context, usually because the learning rate is too high or the masks are wrong.

    Args:
        frequency_loss: what guessing by frequency reaches, in nats; None watches nothing.
        num_warmup_steps: the run's warm-up.
        report: is told.

    Example:
        >>> plateau = Plateau(6.0, num_warmup_steps=10, report=print)
        >>> for step in range(1000, 5000, 200):
        ...     plateau.see(step, 5.99)
        Step 4800: the masked-LM loss (5.99) is still what guessing by word frequency reaches
        (6.00); try a smaller --learning_rate or a longer --num_warmup_steps, and see that the
        shards' masking is right.
    """

    def __init__(
        self,
        frequency_loss: float | None,
        num_warmup_steps: int,
        report: Callable[[str], None],
    ) -> None:
        self._frequency_loss, self._report = frequency_loss, report
        self._from_step = max(1000, 2 * num_warmup_steps)
        self._recent: deque[float] = deque(maxlen=_LINES)

    def see(self, step: int, masked_lm_loss: float | None) -> None:
        """Looks at one logged loss."""
        if self._frequency_loss is None or masked_lm_loss is None or step < self._from_step:
            return
        self._recent.append(masked_lm_loss)
        mean = sum(self._recent) / len(self._recent)
        if len(self._recent) == _LINES and mean > self._frequency_loss - _MARGIN:
            self._report(
                f"Step {step}: the masked-LM loss ({mean:.2f}) is still what guessing by word "
                f"frequency reaches ({self._frequency_loss:.2f}); try a smaller --learning_rate "
                "or a longer --num_warmup_steps, and see that the shards' masking is right."
            )
            self._frequency_loss = None  # said once


class Profiler:
    """Profiles the steps from the first to the last given.

    Args:
        steps: first and last step, counted from 1; None profiles nothing.
        folder: TensorBoard's folder.
    """

    def __init__(self, steps: tuple[int, int] | None, folder: Path) -> None:
        self._steps, self._folder, self._running = steps, folder, False

    def before(self, done: int) -> None:
        """Called with the steps done, before the next call."""
        if self._steps and not self._running and self._steps[0] - 1 <= done < self._steps[1]:
            tf.profiler.experimental.start(str(self._folder))
            self._running = True

    def after(self, done: int) -> None:
        """Called with the steps done, after a call whose figures are there."""
        if self._running and self._steps and done >= self._steps[1]:
            self.close()

    def close(self) -> None:
        """Writes the profile, if one is being taken."""
        if self._running:
            tf.profiler.experimental.stop()
            self._running = False


@dataclasses.dataclass(frozen=True)
class Expectations:
    """What is known of the job beside the data; each may be missing.

    Attributes:
        frequency_loss: masked-LM loss that guessing by word frequency reaches.
        work: floating-point operations of all steps up to a number of steps.
        peak_flops: what the machine can do in a second.
        held_out: says which set is evaluated; figures of another one are not compared.
    """

    frequency_loss: float | None = None
    work: Callable[[float], float] | None = None
    peak_flops: float | None = None
    held_out: str | None = None


class Watch:
    """Logs a run's steps and evaluations.

    Args:
        run: where the files go.
        config: how often.
        first_step: the step the run resumes from.
        writes: False for workers that only compute.
        expectations: to compare with.
        report: is told in a line what looks wrong but is no error.
        where: names the examples of a step (counted from 0).
    """

    def __init__(
        self,
        run: RunDirectory,
        config: TrainingConfig,
        first_step: int,
        writes: bool = True,
        expectations: Expectations | None = None,
        report: Callable[[str], None] = lambda _line: None,
        where: Callable[[int], str] | None = None,
    ) -> None:
        self._config, self._first_step, self._where = config, first_step, where
        self._run, self._report = run, report
        self._expected = expectations or Expectations()
        self._plateau = Plateau(self._expected.frequency_loss, config.num_warmup_steps, report)
        self._files = contextlib.ExitStack()
        self._metrics = self._evaluations = self._saves = self._board = None
        if writes:
            self._metrics = self._files.enter_context(JsonLines(run.metrics, first_step))
            self._evaluations = self._files.enter_context(JsonLines(run.evaluations, first_step))
            self._saves = self._files.enter_context(JsonLines(run.saves, first_step))
            self._board = self._files.enter_context(TensorBoard(run.events, first_step))
        self.evaluated = self._read_evaluated()
        self._progress: Progress | None = None
        self._since, self._seconds_a_step, self._measured = time.monotonic(), 0.0, _Measured()

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress:
            self._progress.close()
        self._files.close()

    def step(self, step: int, metrics: Mapping[str, float], chunk: Chunk) -> None:
        """Looks at one step, and writes its figures where they are due.

        Raises:
            UserError: the loss or the gradient is no number.
        """
        scaled = self._config.precision == "float16"
        check_finite(step, metrics, scaled, self._where)
        self._measure(step, chunk)
        if step % self._config.log_steps == 0 or step == self._config.num_train_steps:
            self._write(step, metrics, chunk)
            self._plateau.see(step, metrics.get("masked_lm_loss"))

    def advance(self, step: int, metrics: Mapping[str, float]) -> None:
        """Moves the progress line to the steps done."""
        if self._progress is None:
            # Begins when the first call is over: it was spent on compiling, not on steps.
            self._progress = Progress(
                "train", self._config.num_train_steps, "steps", work=self._expected.work
            )
            self._progress.resume_from(step)
            self._done = step
        skipped = metrics["skipped_steps"]
        note = f"loss {metrics['loss']:.4f}" + (f", {skipped:.0f} skipped" if skipped else "")
        self._progress.advance(step - self._done, note=note)
        self._done = step

    def evaluation(self, step: int, results: Mapping[str, float]) -> None:
        """Writes one evaluation's figures."""
        self.evaluated[step] = results["loss"]
        if self._evaluations and self._board:
            with _room_to_write(self._run):
                self._evaluations.write({"step": step, **results, **self._held_out()})
                self._board.write(step, results, prefix="eval")

    def end(self, step: int, metrics: Mapping[str, float]) -> None:
        """Says at the end what went otherwise than planned."""
        if skipped := metrics.get("skipped_steps"):
            self._report(
                f"{skipped:.0f} of {step} steps were skipped because float16 overflowed (the loss "
                "scale fell and they changed nothing); where they are many, --precision=bfloat16 "
                "needs no scale."
            )

    def saves(self, written: list[Save]) -> None:
        """Writes down the saves that are complete, and forgets them."""
        while written:
            save = written.pop(0)
            line = {
                "stopped_seconds": round(save.stopped_seconds, 3),
                "written_seconds": round(save.written_seconds, 3),
                "bytes": save.bytes,
            }
            if self._saves and self._board:
                with _room_to_write(self._run):
                    self._saves.write({"step": save.step, **line})
                    self._board.write(save.step, line, prefix="save")

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Time spent inside the block does not enter the rates."""
        start = time.monotonic()
        yield
        self._since += time.monotonic() - start

    def _held_out(self) -> dict[str, str]:
        return {"held_out": self._expected.held_out} if self._expected.held_out else {}

    def _read_evaluated(self) -> dict[int, float]:
        """The losses on this held-out set up to the step that the run resumes from, by step."""
        lines = read_json_lines(self._run.evaluations)
        lines = [line for line in lines if line["step"] <= self._first_step]
        same = [
            line
            for line in lines
            if {**self._held_out(), **line}.get("held_out") == self._expected.held_out
        ]
        if len(same) < len(lines):
            self._report(
                f"{self._run.evaluations}: {len(lines) - len(same)} of {len(lines)} evaluations so "
                "far were of another held-out set; the best checkpoint is chosen without them."
            )
        return {line["step"]: line["loss"] for line in same}

    def _measure(self, step: int, chunk: Chunk) -> None:
        """Counts a step and its share of the time that its compiled call took."""
        if step == chunk.first_step + 1:
            now = time.monotonic()
            self._seconds_a_step = (now - self._since) / len(chunk.learning_rates)
            self._since = now
            if self._progress is None:  # the very first call was spent on compiling
                self._measured = _Measured(compiling=True)
            elif self._measured.compiling:
                self._measured = _Measured()
        measured = self._measured
        measured.steps += 1
        measured.examples += chunk.examples
        measured.tokens += chunk.tokens
        measured.seconds += self._seconds_a_step

    def _rates(self, step: int) -> dict[str, float]:
        """What was done in a second since the last line; the first call's line has compiling in."""
        measured, self._measured = self._measured, _Measured()
        seconds = max(measured.seconds, 1e-9)
        rates = {"examples_per_second": round(measured.examples / seconds, 2)}
        if measured.tokens:
            rates["tokens_per_second"] = round(measured.tokens / seconds, 1)
        if self._expected.work and self._expected.peak_flops:
            work = self._expected.work(step) - self._expected.work(step - measured.steps)
            rates["share_of_peak"] = round(work / seconds / self._expected.peak_flops, 4)
        return rates

    def _write(self, step: int, metrics: Mapping[str, float], chunk: Chunk) -> None:
        rates = self._rates(step)
        learning_rate = chunk.learning_rates[step - 1 - chunk.first_step]
        line = _ordered(metrics, learning_rate, rates)
        if chunk.tokens:
            line["padding_share"] = round(chunk.padding_share, 4)
        if self._metrics and self._board:
            with _room_to_write(self._run):
                self._metrics.write({"step": step, **line})
                self._board.write(step, line)


@dataclasses.dataclass
class _Measured:
    """What was done since the last line."""

    steps: int = 0
    examples: int = 0
    tokens: int = 0
    seconds: float = 0.0
    compiling: bool = False


@contextlib.contextmanager
def _room_to_write(run: RunDirectory) -> Iterator[None]:
    """A full disk is the user's to mend, not a bug."""
    try:
        yield
    except (OSError, tf.errors.OpError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise UserError(
            f"{run.path}: the run's figures cannot be written ({reason}); free some space and "
            "start the same command again: it resumes from the newest checkpoint."
        ) from error


def _ordered(
    metrics: Mapping[str, float], learning_rate: float, rates: Mapping[str, float]
) -> dict[str, float]:
    """The line of `metrics.jsonl`: losses first, then rates, then what else was measured."""
    losses = {name: value for name, value in metrics.items() if name.endswith("loss")}
    line = {
        **losses,
        "learning_rate": learning_rate,
        "gradient_norm": metrics["gradient_norm"],
        **rates,
    }
    others = {n: v for n, v in metrics.items() if n not in line and n != "stop_votes"}
    return {**line, **others}


def check_finite(
    step: int,
    metrics: Mapping[str, float],
    scaled: bool,
    where: Callable[[int], str] | None = None,
) -> None:
    """Stops a run whose loss or gradient is no number.

    Args:
        step: the step, counted from 1.
        metrics: its figures.
        scaled: in float16 a gradient that is not finite is only a step to skip, as long as the
            scale of the loss can still fall.
        where: names the examples of a step, counted from 0.

    Raises:
        UserError: the loss, or the gradient's norm where that is no step to skip, is not finite.

    Example:
        >>> check_finite(3, {"loss": 1.0, "gradient_norm": 2.0}, scaled=False)
    """
    may_skip = scaled and metrics["loss_scale"] > 1.0
    for name in ("loss",) if may_skip else ("loss", "gradient_norm"):
        if not math.isfinite(metrics[name]):
            examples = f"its batch holds {where(step - 1)}" if where else "its batch is unknown"
            raise UserError(
                f"Step {step}: the {name.replace('_', ' ')} is {metrics[name]}; {examples}; try a "
                "smaller --learning_rate or a longer --num_warmup_steps"
                f"{' or --precision=bfloat16' if scaled else ''}, see that ids, labels and weights "
                "of these examples are right, and resume with --allow_changed_flags: the newest "
                "checkpoint is from before this step."
            )
