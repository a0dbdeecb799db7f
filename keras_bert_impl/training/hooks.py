"""The hooks of every run: checks, logs, saves and evaluations; one small class each."""

import dataclasses
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from keras_bert_impl.errors import UserError
from keras_bert_impl.progress import Progress
from keras_bert_impl.training.checkpoints import read_description
from keras_bert_impl.training.metric_writers import read_json_lines
from keras_bert_impl.training.run import Hook, Run
from keras_bert_impl.training.step import Chunk
from keras_bert_impl.training.stop_signal import StopRequestedError


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

    Args:
        work: floating-point operations of all steps up to a number of steps.
        peak_flops: what the machine can do in a second.
    """

    def __init__(
        self, work: Callable[[float], float] | None = None, peak_flops: float | None = None
    ) -> None:
        self._work, self._peak_flops = work, peak_flops
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
            step: its number, counted from 1.
            chunk: the inputs of the compiled call that it was part of.
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

    def read(self, step: int) -> dict[str, float]:
        """The rates of the steps since the last reading, up to `step`."""
        measured, self._measured = self._measured, _Measured()
        seconds = max(measured.seconds, 1e-9)
        rates = {"examples_per_second": round(measured.examples / seconds, 2)}
        if measured.tokens:
            rates["tokens_per_second"] = round(measured.tokens / seconds, 1)
        if self._work and self._peak_flops:
            work = self._work(step) - self._work(step - measured.steps)
            rates["share_of_peak"] = round(work / seconds / self._peak_flops, 4)
        return rates


def log_line(
    metrics: Mapping[str, float], chunk: Chunk, step: int, rates: Mapping[str, float]
) -> dict[str, float]:
    """The figures of a logged step: losses first, then rates, then what else was measured.

    Args:
        metrics: the step's.
        chunk: the inputs of the compiled call that it was part of.
        step: its number, counted from 1.
        rates: from `Rates.read`.
    """
    line = {
        **{name: value for name, value in metrics.items() if name.endswith("loss")},
        "learning_rate": chunk.learning_rates[step - 1 - chunk.first_step],
        "gradient_norm": metrics["gradient_norm"],
        **rates,
    }
    others = {n: v for n, v in metrics.items() if n not in line and n != "stop_votes"}
    padding = {"padding_share": round(chunk.padding_share, 4)} if chunk.tokens else {}
    return {**line, **others, **padding}


Work = Callable[[float], float]
"""Floating-point operations of all steps up to a number of steps."""


def standard_hooks(
    evaluate: Callable[[], Mapping[str, float]] | None = None,
    held_out: str | None = None,
    frequency_loss: float | None = None,
    work: Work | None = None,
    peak_flops: float | None = None,
    best_by: str = "loss",
) -> list[Hook]:
    """Gives the hooks of a run, in the order in which they are called.

    Args:
        evaluate: measures the model on held-out data; gives `loss` or another `best_by`, and more.
        held_out: says which data these are; figures of other data are not compared.
        frequency_loss: the masked-LM loss that guessing by word frequency reaches, in nats.
        work: what the steps cost.
        peak_flops: what the machine can do in a second.
        best_by: see `EvaluateHeldOut`.
    """
    return [
        CheckFinite(),
        LogSteps(work, peak_flops),
        *([WarnOfPlateau(frequency_loss)] if frequency_loss is not None else []),
        ShowProgress(work),
        Profile(),
        SaveCheckpoints(),  # before the evaluation, which may take minutes
        *([EvaluateHeldOut(evaluate, held_out, best_by)] if evaluate else []),
    ]


class CheckFinite(Hook):
    """Stops a run whose loss or gradient is NaN or infinite, and counts what float16 skipped."""

    def after_step(self, run: Run) -> None:
        """Looks at one step.

        Raises:
            UserError: it is NaN or infinite.
        """
        scaled = run.config.precision == "float16"
        check_finite(run.step, run.metrics, scaled, run.batches.where)

    def end(self, run: Run) -> None:
        """Says how many steps float16 skipped."""
        if skipped := run.metrics.get("skipped_steps"):
            run.log(
                f"{skipped:.0f} of {run.step} steps were skipped because float16 overflowed (the "
                "loss scale fell and they changed nothing); where they are many, "
                "`precision=bfloat16` needs no scale."
            )


def check_finite(
    step: int, metrics: Mapping[str, float], scaled: bool, where: Callable[[int], str]
) -> None:
    """Refuses figures that are NaN or infinite.

    Args:
        step: the step, counted from 1.
        metrics: its figures.
        scaled: in float16 a gradient that is not finite is only a step to skip, as long as the
            scale of the loss can still fall.
        where: names the examples of a step, counted from 0.

    Raises:
        UserError: the loss, or the gradient's norm where that is no step to skip, is not finite.

    Example:
        >>> check_finite(3, {"loss": 1.0, "gradient_norm": 2.0}, scaled=False, where=str)
    """
    may_skip = scaled and metrics["loss_scale"] > 1.0
    for name in ("loss",) if may_skip else ("loss", "gradient_norm"):
        if not math.isfinite(metrics[name]):
            raise UserError(
                f"Step {step}: the {name.replace('_', ' ')} is {metrics[name]}; its batch holds "
                f"{where(step - 1)}; try a smaller `learning_rate` or a longer warm-up"
                f"{' or `precision=bfloat16`' if scaled else ''}, see that ids, labels and weights "
                "of these examples are right, and resume with `allow_changed_flags=True`: the "
                "newest checkpoint is from before this step."
            )


class LogSteps(Hook):
    """Writes the figures and the rates of the logged steps.

    Args:
        work: what the steps cost; with `peak_flops` it gives `share_of_peak`.
        peak_flops: what the machine can do in a second.
    """

    def __init__(self, work: Work | None = None, peak_flops: float | None = None) -> None:
        self._rates = Rates(work, peak_flops)

    def begin(self, run: Run) -> None:
        """Starts the clock."""
        self._rates.start(time.monotonic() - run.paused_seconds)

    def after_step(self, run: Run) -> None:
        """Counts a step; writes a line where it is due."""
        assert run.chunk is not None
        self._rates.count(run.step, run.chunk, time.monotonic() - run.paused_seconds)
        if run.is_logged:
            line = log_line(run.metrics, run.chunk, run.step, self._rates.read(run.step))
            run.writers.write("train", run.step, line)


class WarnOfPlateau(Hook):
    """Points out, once, that the masked-LM loss is stuck where guessing by frequency is.

    Every run passes this plateau; one that is still there long after the warm-up does not learn
    from context, usually because the learning rate is too high or the masks are wrong.

    Args:
        frequency_loss: what guessing by frequency reaches, in nats.
    """

    LINES, MARGIN, FROM_STEP = 20, 0.05, 1000

    def __init__(self, frequency_loss: float) -> None:
        self._frequency_loss = frequency_loss
        self._recent: deque[float] = deque(maxlen=self.LINES)
        self._warned = False

    def after_step(self, run: Run) -> None:
        """Looks at the loss of a logged step."""
        from_step = max(self.FROM_STEP, 2 * run.config.num_warmup_steps)
        if self._warned or not run.is_logged or run.step < from_step:
            return
        self._recent.append(run.metrics["masked_lm_loss"])
        mean = sum(self._recent) / len(self._recent)
        if len(self._recent) == self.LINES and mean > self._frequency_loss - self.MARGIN:
            self._warned = True
            run.log(
                f"Step {run.step}: the masked-LM loss ({mean:.2f}) is still what guessing by word "
                f"frequency reaches ({self._frequency_loss:.2f}); try a smaller `learning_rate` "
                "or a longer warm-up, and see that the shards' masking is right."
            )


class ShowProgress(Hook):
    """Shows how far the run is, with the loss.

    A call with inputs of a new shape (the first one, and in fine-tuning the first one of each
    length of batches) is spent on compiling, and says nothing about the time left.

    Args:
        work: what the steps cost; the time left follows it.
        clock: gives seconds; a test passes its own.
    """

    def __init__(
        self, work: Work | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._work, self._clock = work, clock
        self._progress: Progress | None = None
        self._shown = 0
        self._shapes: set[tuple[int, int, int]] = set()

    def before_call(self, run: Run) -> None:
        """Starts the clock before the first call."""
        if self._progress is None:
            steps = run.config.num_train_steps
            self._progress = Progress("train", steps, "steps", work=self._work, clock=self._clock)
            self._progress.resume_from(run.step)
            self._shown = run.step

    def after_call(self, run: Run) -> None:
        """Moves on to the steps done."""
        assert self._progress is not None
        assert run.chunk is not None
        shape = (len(run.chunk.learning_rates), run.chunk.examples, run.chunk.tokens)
        compiled = shape not in self._shapes
        self._shapes.add(shape)
        skipped = run.metrics["skipped_steps"]
        note = f"loss {run.metrics['loss']:.4f}" + (f", {skipped:.0f} skipped" if skipped else "")
        self._progress.advance(run.step - self._shown, note, compiled=compiled)
        self._shown = run.step

    def close(self, run: Run) -> None:  # noqa: ARG002
        """Writes the closing line."""
        if self._progress:
            self._progress.close()


class Profile(Hook):
    """Profiles the steps from the first to the last of `profile_steps`, for TensorBoard."""

    def __init__(self) -> None:
        self._running = False

    def before_call(self, run: Run) -> None:
        """Starts before the call that holds the first step."""
        steps = run.config.profile_steps if run.is_chief else None
        if steps and not self._running and steps[0] - 1 <= run.step < steps[1]:
            tf.profiler.experimental.start(str(run.directory.events))
            self._running = True

    def after_call(self, run: Run) -> None:
        """Ends after the call that holds the last step."""
        if run.config.profile_steps and run.step >= run.config.profile_steps[1]:
            self.close(run)

    def close(self, run: Run) -> None:  # noqa: ARG002
        """Writes the profile, if one is being taken."""
        if self._running:
            tf.profiler.experimental.stop()
            self._running = False


class SaveCheckpoints(Hook):
    """Saves every `save_checkpoints_steps`, at the end and before a stop; logs what saves cost."""

    def after_call(self, run: Run) -> None:
        """Saves where it is due."""
        if (
            run.stopping
            or run.step == run.last_step
            or run.is_due(run.config.save_checkpoints_steps)
        ):
            run.save()
        self._log(run)  # afterwards: where the log cannot be written, the steps are not lost

    def close(self, run: Run) -> None:
        """Logs the last saves, also of a run that an error ended."""
        self._log(run)

    def _log(self, run: Run) -> None:
        for save in run.checkpoints.completed_saves():
            figures = {
                "stopped_seconds": round(save.stopped_seconds, 3),
                "written_seconds": round(save.written_seconds, 3),
                "bytes": save.bytes,
            }
            run.writers.write("save", save.step, figures)


class EvaluateHeldOut(Hook):
    """Evaluates every `eval_steps` and at the end, and keeps the best variables.

    An evaluation that a stop interrupts, or that a kill cut short, is made up for when the run is
    resumed.

    Args:
        evaluate: measures the model; gives figures, `best_by` among them.
        held_out: says on which data; figures of other data are not compared.
        best_by: which figure says what is best: the lowest `loss`, or the highest of another one.
    """

    def __init__(
        self,
        evaluate: Callable[[], Mapping[str, float]],
        held_out: str | None = None,
        best_by: str = "loss",
    ) -> None:
        self._evaluate, self._held_out, self._best_by = evaluate, held_out, best_by
        self._badness: dict[int, float] = {}  # on this held-out set, by step

    def begin(self, run: Run) -> None:
        """Does for the step that the run resumes from what a stop or a kill left undone."""
        self._badness = self._read_badness(run)
        if run.stopping or run.step == 0 or not self._is_due(run):
            return
        if run.step not in self._badness:
            self._measure(run)
        elif self._badness[run.step] < self._least_badness(run):
            run.save_best()

    def after_call(self, run: Run) -> None:
        """Evaluates where it is due."""
        if not run.stopping and self._is_due(run):
            self._measure(run)

    def _is_due(self, run: Run) -> bool:
        at_the_end = run.config.eval_steps > 0 and run.step == run.config.num_train_steps
        return run.is_due(run.config.eval_steps) or at_the_end

    def _measure(self, run: Run) -> None:
        start = time.monotonic()
        try:
            with run.stop.interrupting(run.is_alone):
                results = self._evaluate()
        except StopRequestedError:
            run.stopping = True
            run.save()
            return
        run.paused_seconds += time.monotonic() - start
        badness = self._badness_of(results)
        if badness < self._least_badness(run):
            run.save_best()
        self._badness[run.step] = badness
        run.writers.write("eval", run.step, {**results, **self._name()})

    def _name(self) -> dict[str, str]:
        return {"held_out": self._held_out} if self._held_out else {}

    def _badness_of(self, results: Mapping[str, float]) -> float:
        """The figure that decides, as a number that is to be low."""
        figure = results[self._best_by]
        return figure if self._best_by == "loss" else -figure

    def _least_badness(self, run: Run) -> float:
        """That of the checkpoint that is there as the best: writing a better one may fail."""
        run.checkpoints.settle()
        try:
            step = int(read_description(run.directory.best_checkpoint)["step"])
        except (OSError, ValueError, LookupError):
            return math.inf
        return self._badness.get(step, math.inf)

    def _read_badness(self, run: Run) -> dict[int, float]:
        """Reads the evaluations of this held-out set up to the step that the run resumes from."""
        lines = read_json_lines(run.directory.evaluations)
        lines = [line for line in lines if line["step"] <= run.first_step]
        same = [line for line in lines if self._is_same_set(line)]
        if len(same) < len(lines):
            run.log(
                f"{run.directory.evaluations}: {len(lines) - len(same)} of {len(lines)} "
                "evaluations so far were of another held-out set; the best checkpoint is chosen "
                "without them."
            )
        return {line["step"]: self._badness_of(line) for line in same if self._best_by in line}

    def _is_same_set(self, line: Mapping[str, Any]) -> bool:
        """Whether a line is of this held-out set; one from before sets were named is."""
        return {**self._name(), **line}.get("held_out") == self._held_out
