"""A training run: one folder, one model, one or more phases."""

import contextlib
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from keras_bert_impl.checkpoints.model_card import CARD_FILE, TrainingFacts, model_card, write_card
from keras_bert_impl.checkpoints.model_directory import (
    check_apart,
    check_folder,
    describe_checkpoint,
)
from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.checkpoints.restore import RestoreReport, restore, restore_merged
from keras_bert_impl.checkpoints.run_folder import step_folder
from keras_bert_impl.checkpoints.sentence_modules import SentenceSettings, read_sentence_settings
from keras_bert_impl.checkpoints.sources import TensorSource
from keras_bert_impl.errors import UserError
from keras_bert_impl.interrupts import on_stop
from keras_bert_impl.json_files import read_log
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.training.batches import Phase
from keras_bert_impl.training.checkpoints import read_best, read_description
from keras_bert_impl.training.config import TrainingConfig, dtype_policy, with_later_end
from keras_bert_impl.training.hooks import badness
from keras_bert_impl.training.learning_curve import read_guesses
from keras_bert_impl.training.loop import TrainingResult, train
from keras_bert_impl.training.metric_writers import add_evaluation
from keras_bert_impl.training.objectives import Objective
from keras_bert_impl.training.run import Hook, Run
from keras_bert_impl.training.run_directory import RunDirectory
from keras_bert_impl.training.state import TrainingState
from keras_bert_impl.training.strategy import Devices, check_same_step

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainingRun:
    """One run in one folder: builds the model, trains it phase by phase, writes what it became.

    The same calls again resume a run that was stopped. Of several workers only the first one
    writes; the others compute.
    """

    directory: RunDirectory
    config: TrainingConfig  # its steps are those of all phases together
    devices: Devices
    flags: str = ""  # the command as a flag file

    def build_model(
        self, make: Callable[[str], Any], checkpoint: Path | TensorSource | None = None
    ) -> tuple[Any, RestoreReport | None]:
        """Makes a model by its dtype policy with the run's seed; gives it and what was restored."""
        # From there Keras draws the seeds of initial values. To set TensorFlow's as well would make
        # it prepare all its functions anew: seconds, of several runs in a process.
        random.seed(self.config.seed)
        with self.devices.strategy.scope():
            model = make(dtype_policy(self.config.precision))
            model.encoder.recompute = self.config.recompute
            self.devices.set_kernels(model)
            if checkpoint is None:
                return model, None
            report = restore(model, checkpoint)
        _LOGGER.info("%s", report.table())
        return model, report

    def train(
        self,
        model: Any,
        objective: Objective,
        phases: Sequence[Phase],
        settings: Mapping[str, Any],
        write_results: Callable[[TrainingResult], None],
        hooks: Sequence[Hook],
        options: type = TrainingConfig,
        state: TrainingState | None = None,
    ) -> TrainingResult:
        """Trains to the end of the phases, or as far as it is let, and writes the results.

        Other processes are kept out of the folder until the results are written, and SIGTERM does
        not interrupt the writing. The model then has the weights that the run is for: those of the
        last step, or of the best evaluation (`save_best`), or their average (`ema_decay`). `state`
        is that of a run that trained the model before.
        """
        chief = self.devices.is_chief
        if state:
            state.begin_anew()
        state = state or TrainingState(model, self.config, self.devices)
        with self.directory.taken() if chief else contextlib.nullcontext(), on_stop() as stop:
            result = train(
                state,
                objective,
                phases,
                self.config,
                self.directory,
                settings=settings,
                hooks=[KeepFlags(self.flags), *hooks],
                log=_LOGGER.warning,
                options=options,
            )
            if result.finished:
                result = self._take_weights(result)
            if chief:
                write_results(result)
        return replace(result, finished=result.finished and not stop.requested)

    def _take_weights(self, result: TrainingResult) -> TrainingResult:
        """Gives the model its last weights; one that was written before keeps those of then."""
        written = self.directory.is_written(result.step) and not result.is_new
        best = self.directory.best_step() is not None if written else self.config.save_best
        if written and best != self.config.save_best and self.devices.is_chief:
            _LOGGER.warning(
                "%s was written with %s and stays so; `save_best` is for runs that still train.",
                *(self.directory.model, "the best weights" if best else "those of the last step"),
            )
        if not best:
            result.state.take_averages()
            return result
        if written:  # `best_checkpoint` need not be there any more
            restore_merged(result.state.model, self.directory.model)
            return replace(result, best_step=self.directory.best_step())
        check_same_step(self.devices, result.step)  # so that no worker reads before it is written
        step = int(read_best(self.directory.best_checkpoint, result.state)["step"])
        _LOGGER.info("the model has the weights of step %s, the best that are kept", f"{step:,}")
        return replace(result, best_step=step)

    def write_model(self, result: TrainingResult, write: Callable[[Path], None]) -> None:
        """Writes a finished model; its user may have named the labels of one that is there."""
        if result.finished and (result.is_new or not self.directory.is_written(result.step)):
            write(self.directory.model)
            self.directory.write_finished_step(result.step, result.best_step)
            self._write_card({})

    def write_eval_results(
        self, figures: dict[str, float], more: Mapping[str, float] | None = None, held_out: str = ""
    ) -> None:
        if self.devices.is_chief:
            self.directory.write_eval_results({**figures, **(more or {})}, held_out)
            self._write_card(figures)

    def _write_card(self, figures: Mapping[str, float]) -> None:
        """Says in the card of the run's model how it was trained and what its figures are."""
        run = self.directory
        if not (run.model / CARD_FILE).is_file():
            return
        # Those of the training, which an evaluation alone need not repeat.
        flags = run.flags.read_text(encoding="utf-8") if run.flags.is_file() else self.flags
        words = dict(line[2:].partition("=")[::2] for line in flags.splitlines())
        lines = read_log(run.metrics)
        done, usual = [0, *(line["step"] for line in lines)], self.config.train_batch_size
        seconds = sum(
            (line["step"] - before) * line.get("examples_per_step", usual) / rate
            for before, line in zip(done, lines, strict=False)
            if (rate := line.get("examples_per_second"))
        )
        guesses = {name: one.value for name, one in read_guesses(run).items()}
        facts = TrainingFacts(
            flags,
            words.get("teacher") or words.get("init_checkpoint", ""),
            run.finished_step() or 0,
            seconds / 3600,
            figures,
            guesses | {f"eval_{name}": value for name, value in guesses.items()},
        )
        source = find_model(run.model)
        sentences = read_sentence_settings(run.model) is not None
        card = model_card(source.config, source.text, facts, sentences=sentences)
        write_card(run.model, card)

    def log_final_evaluation(
        self, step: int, figures: Mapping[str, Any], best_by: str = "loss"
    ) -> None:
        """Adds the figures of `step` to the evaluations; says so if a better one is not kept."""
        if not self.devices.is_chief:
            return
        add_evaluation(self.directory, step, figures)
        lines = [
            line
            for line in read_log(self.directory.evaluations)
            if best_by in line and line.get("held_out") == figures.get("held_out")
        ]
        best = min(lines, key=lambda line: badness(line, best_by), default=None)
        if best is None or self.config.save_best:  # figures without labels may lack the loss
            return
        if badness(best, best_by) < badness(figures, best_by):
            _LOGGER.warning(
                "The best evaluation was that of step %s (%s %.4g, at the end %.4g); `save_best` "
                "keeps its weights.",
                *(f"{best['step']:,}", best_by.replace("_", " "), best[best_by], figures[best_by]),
            )


class KeepFlags(Hook):
    """Keeps the command once the run's checkpoint fits it: a refused command leaves the old one."""

    def __init__(self, flags: str) -> None:
        self._flags = flags

    def begin(self, run: Run) -> None:
        if run.is_chief:
            run.directory.write_flags(self._flags)


class DescribeModel(Hook):
    """Makes each checkpoint of the run a model that every tool opens; the first hook of its run."""

    def __init__(
        self, model: Any, text: TextSettings, sentence: SentenceSettings | None = None
    ) -> None:
        self._describe = partial(describe_checkpoint, model=model, text=text, sentence=sentence)

    def begin(self, run: Run) -> None:
        names = [variable.path for variable in run.state.model.weights]
        run.checkpoints.describe_model = partial(self._describe, names=names)


def check_destination(directory: RunDirectory, checkpoint: str | Path | None = None) -> None:
    """Sees, before hours of training, that the model may be written and replaces no other."""
    directory.check_names()
    check_folder(directory.model)
    if checkpoint:
        check_apart(checkpoint, directory.model)


def is_finished(directory: RunDirectory, config: TrainingConfig) -> bool:
    """Whether the folder's model is the end of this run: not of fewer steps that were added to."""
    finished, newest = directory.finished_step(), directory.newest_step()
    if finished is None or not directory.model.is_dir() or newest > finished:
        return False
    with contextlib.suppress(UserError):  # the model is whole, whatever the checkpoint is
        before = read_description(step_folder(directory.checkpoints, newest)) if newest else None
        if before and with_later_end(before["settings"], config.mathematics()):
            return False
    return finished >= config.num_train_steps or not config.allow_changed_flags
