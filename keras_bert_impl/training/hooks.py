"""The hooks of every run: checks, logs, saves and evaluations; one small class each."""

import dataclasses
import logging
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from keras_bert_impl.checkpoints.run_folder import is_run_checkpoint
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import without_links
from keras_bert_impl.interrupts import StopRequestedError
from keras_bert_impl.json_files import read_log
from keras_bert_impl.progress import Progress
from keras_bert_impl.training.checkpoints import read_description
from keras_bert_impl.training.config import LOW_IS_GOOD
from keras_bert_impl.training.metric_writers import Rates, log_line
from keras_bert_impl.training.run import Hook, Run
from keras_bert_impl.training.step import OF_THE_STEP

_LOGGER = logging.getLogger(__name__)


def standard_hooks(
    evaluate: Callable[[], Mapping[str, float]] | None = None,
    held_out: str | None = None,
    **how: Any,
) -> list[Hook]:
    """Gives the hooks of a run, in the order in which they are called; see `EvaluateHeldOut`."""
    return [
        CheckFinite(),
        LogSteps(),
        ShowProgress(),
        Profile(),
        SaveCheckpoints(),  # before the evaluation, which may take minutes
        *([EvaluateHeldOut(evaluate, held_out, **how)] if evaluate else []),
    ]


class CheckFinite(Hook):
    """Stops a run whose loss or gradient is NaN or infinite, and counts what float16 skipped."""

    def after_step(self, run: Run) -> None:
        scaled = run.config.precision == "float16"
        check_finite(run.step, run.metrics, scaled, run.where)

    def end(self, run: Run) -> None:
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
    """Writes a line at every logged step: means since the last line, and rates.

    What the objective measures (losses, accuracies) is a mean; the rate of learning, the gradient's
    norm and the loss scale are the step's own. The sums lie in the checkpoints, so that a resumed
    run writes the same lines.
    """

    def __init__(self) -> None:
        self._sums: dict[str, list[float]] = {}

    def begin(self, run: Run) -> None:
        """Starts the clock, and takes over the sums of the steps since the last line."""
        self._sums = run.kept.setdefault("sums_since_last_line", {})
        self._rates = Rates(time.monotonic() - run.paused_seconds)

    def after_step(self, run: Run) -> None:
        assert run.chunk is not None
        self._rates.count(run.step, run.chunk, time.monotonic() - run.paused_seconds)
        measured = {**run.metrics, "examples_per_step": run.chunk.examples}
        for name, value in measured.items():
            if name not in OF_THE_STEP:
                total, count = self._sums.get(name, (0.0, 0))
                self._sums[name] = [total + value, count + 1]
        if run.is_logged:
            means = {name: total / count for name, (total, count) in self._sums.items()}
            self._sums.clear()
            metrics = {**run.metrics, **means}
            line = log_line(metrics, run.chunk, run.step, self._rates.read())
            run.writer.write("train", run.step, line)


class ShowProgress(Hook):
    """Shows how far the run is, with the mean loss since it was shown last.

    A call with inputs of a new shape, the first one and in fine-tuning the first one of each length
    of batches, is spent compiling, and does not enter rate and time left.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._progress: Progress | None = None
        self._shown = 0
        self._losses: list[float] = []

    def before_call(self, run: Run) -> None:
        if self._progress is None:
            # Evaluations are no part of the steps' time.
            self._progress = Progress(
                "train",
                None if run.budget else run.config.num_train_steps,
                "steps",
                clock=lambda: self._clock() - run.paused_seconds,
            )
            self._progress.resume_from(run.step)
            self._shown = run.step

    def after_step(self, run: Run) -> None:
        self._losses.append(run.metrics["loss"])

    def after_call(self, run: Run) -> None:
        assert self._progress is not None
        skipped = run.metrics["skipped_steps"]
        mean = sum(self._losses) / len(self._losses)
        note = f"loss {mean:.4f}" + (f", {skipped:.0f} skipped" if skipped else "")
        if run.budget:
            note = f"{run.budget.in_words()}, {note}"
        if self._progress.advance(run.step - self._shown, note, compiled=run.compiles):
            self._losses = []
        self._shown = run.step

    def close(self, run: Run) -> None:  # noqa: ARG002
        if self._progress:
            self._progress.close()


class Profile(Hook):
    """Profiles the steps from the first to the last of `profile_steps`, for TensorBoard."""

    def __init__(self) -> None:
        self._running = False

    def before_call(self, run: Run) -> None:
        steps = run.config.profile_steps if run.is_chief else None
        if steps and not self._running and steps[0] - 1 <= run.step < steps[1]:
            without_links(run.directory.events / "plugins" / "profile", names=2)
            tf.profiler.experimental.start(str(run.directory.events))
            self._running = True

    def after_call(self, run: Run) -> None:
        if run.config.profile_steps and run.step >= run.config.profile_steps[1]:
            self.close(run)

    def close(self, run: Run) -> None:  # noqa: ARG002
        if self._running:
            tf.profiler.experimental.stop()
            self._running = False


SECONDS_BETWEEN_SAVES = 600.0
"""A power cut costs no more than that."""
_SAVES_OF_HOURS = 10  # that a run with hours has at least
_OLD_BEFORE_EVALUATION = 60.0  # seconds


class SaveCheckpoints(Hook):
    """Saves by steps and by time, at the end and before a stop.

    The first worker's clock says when the last save is too old; it asks for one with the next call,
    and all workers see that it is due after the same step.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._saved_at = 0.0

    def begin(self, run: Run) -> None:
        self._saved_at = self._clock()
        self._keep_plateau(run)

    def before_call(self, run: Run) -> None:
        longest = SECONDS_BETWEEN_SAVES
        if run.config.train_hours:
            longest = min(longest, run.config.length / _SAVES_OF_HOURS)
        old = self._clock() - self._saved_at >= longest
        run.wants_save = run.is_chief and old

    def after_call(self, run: Run) -> None:
        self._keep_plateau(run)
        by_time = run.metrics.get("save_votes", 0.0) > 0
        by_steps = run.is_due(run.config.steps_between_saves)
        if run.is_due(run.config.steps_between_evaluations):  # which may take long
            by_time |= self._clock() - self._saved_at >= _OLD_BEFORE_EVALUATION
        if run.stopping or run.step == run.last_step or by_steps or by_time:
            run.save()
            self._saved_at = self._clock()

    def _keep_plateau(self, run: Run) -> None:
        """Keeps for good the state before the rate falls: a later end is reached from there."""
        if run.step and "plateau" not in run.kept and run.position >= run.config.plateau_end:
            run.kept["plateau"] = run.checkpoints.lasting = run.step
            run.save()


@dataclasses.dataclass(eq=False)
class EvaluateHeldOut(Hook):
    """Evaluates every `eval_steps` and at the end; keeps the best variables, or ends the run early.

    An evaluation that a stop interrupts, or that a kill cut short, is made up for when the run is
    resumed. What is best, and for how long nothing was better, follows from `evaluations.jsonl`,
    where figures of data that is not `held_out` are not compared. A run with hours is evaluated by
    the clock; what comes `at_end` takes so many times as long as one of these evaluations.
    """

    evaluate: Callable[[], Mapping[str, float]]
    held_out: str | None = None
    best_by: str = "loss"
    keep_best: bool = True
    at_end: float = 1.0

    def __post_init__(self) -> None:
        self._name = {"held_out": self.held_out} if self.held_out else {}
        self._badness: dict[int, float] = {}  # on this held-out set, by step

    def begin(self, run: Run) -> None:
        """Does for the step that the run resumes from what a stop or a kill left undone."""
        self._badness = self._read_badness(run)
        if run.stopping or run.step == 0:
            return
        due, ended = self._is_due(run), run.directory.is_written(run.step)
        if due and run.step not in self._badness:
            if ended and (run.step == run.goal or run.config.early_stopping_evals):
                run.ended_early = True  # what is best was chosen: another set changes no model
            else:
                self._measure(run)
            return
        self._end_early(run)
        if due and not ended:
            self._save_if_best(run)

    def after_call(self, run: Run) -> None:
        if not run.stopping and self._is_due(run):
            self._measure(run)

    def _is_due(self, run: Run) -> bool:
        every, budget = run.config.steps_between_evaluations, run.budget
        if run.step == run.goal:
            return (every > 0 or budget is not None) and self.keep_best
        told = run.config.eval_steps
        by_time = budget is not None and told != 0 and budget.is_evaluation_due(told is None)
        return run.is_due(every) or by_time

    def _measure(self, run: Run) -> None:
        start = time.monotonic()
        try:
            # The weights are exchanged outside of what a signal may interrupt.
            with run.state.averaged(), run.stop.interrupting(run.is_alone):
                results = self.evaluate()
        except StopRequestedError:
            run.stopping = True
            run.save()
            return
        seconds = time.monotonic() - start
        run.paused_seconds += seconds
        if run.budget:
            run.budget.evaluated(seconds, self.at_end + int(self.keep_best))
        self._badness[run.step] = badness(results, self.best_by)
        self._save_if_best(run)
        run.writer.write("eval", run.step, {**results, **self._name})
        if run.is_chief:
            figures = (f"{name.replace('_', ' ')} {value:.4g}" for name, value in results.items())
            _LOGGER.info("step %s: evaluation: %s", f"{run.step:,}", ", ".join(figures))
        self._end_early(run)

    def _save_if_best(self, run: Run) -> None:
        # Looked at first, whether it is kept or not: it settles a save that is under way.
        least = self._least_badness(run)
        if self.keep_best and self._badness[run.step] < least:
            run.save(as_best=True)

    def _end_early(self, run: Run) -> None:
        """Ends the run where the last evaluations were not better than the best one before."""
        patience = run.config.early_stopping_evals
        if not (patience and self._badness) or run.step == run.goal:
            return
        best = min(sorted(self._badness), key=self._badness.__getitem__)  # of equals the first
        if sum(step > best for step in self._badness) < patience:
            return
        run.ended_early = True
        run.save()
        run.log(
            f"Step {run.so_far()}: training ends early, because the held-out "
            f"{self.best_by.replace('_', ' ')} was the best at step {best:,} and in none of the "
            f"{patience} evaluations since."
        )

    def _least_badness(self, run: Run) -> float:
        """That of the checkpoint that is there as the best: writing a better one may fail.

        One of a step that was just made is of a run that began anew, or went back.
        """
        run.checkpoints.settle()
        if not is_run_checkpoint(run.directory.best_checkpoint):
            return math.inf
        step = read_description(run.directory.best_checkpoint)["step"]
        stale = step == run.step > run.first_step
        return math.inf if stale else self._badness.get(step, math.inf)

    def _read_badness(self, run: Run) -> dict[int, float]:
        """Reads the evaluations of this held-out set up to the step that the run resumes from."""
        lines = read_log(run.directory.evaluations)
        lines = [line for line in lines if line["step"] <= run.first_step]
        # A line from before sets were named is of this one.
        same = [line for line in lines if self._name.items() <= {**self._name, **line}.items()]
        if len(same) < len(lines):
            run.log(
                f"{run.directory.evaluations}: {len(lines) - len(same)} of {len(lines)} "
                "evaluations so far were of another held-out set; the best checkpoint is chosen "
                "without them."
            )
        comparable = [line for line in same if self.best_by in line]
        return {line["step"]: badness(line, self.best_by) for line in comparable}


def badness(figures: Mapping[str, Any], best_by: str) -> float:
    """The figure that decides, as a number that is to be low."""
    figure = figures[best_by]  # in a log null is NaN
    if figure is None or math.isnan(figure):
        return math.inf
    return figure if best_by.endswith(LOW_IS_GOOD) else -figure
