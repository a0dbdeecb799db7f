"""Pre-training: from shards to a model directory, and to those of steps on the way."""

import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.checkpoints.restore import restore
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.interrupts import kept_so_far
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.options import options_named
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.training import learning_curve
from keras_bert_impl.training.batches import Phase
from keras_bert_impl.training.checkpoints import Checkpoints, check_settings
from keras_bert_impl.training.evaluation import Evaluation
from keras_bert_impl.training.hooks import standard_hooks
from keras_bert_impl.training.loop import TrainingResult, rehearse
from keras_bert_impl.training.objectives import PretrainingObjective
from keras_bert_impl.training.run import Hook, Run
from keras_bert_impl.training.run_directory import RunDirectory
from keras_bert_impl.training.state import TrainingState
from keras_bert_impl.training.strategy import make_devices, telling_of_lost_workers
from pipelines.inputs.pretraining import PretrainingBatches, PretrainingEvaluation
from pipelines.metrics import guessing
from pipelines.pretraining_data.masking import Targets
from pipelines.records.check import Expected
from pipelines.runs.pretraining_config import (
    PhaseConfig,
    RunPretrainingConfig,
    kept_model,
    options_of_phase,
)
from pipelines.runs.pretraining_start import (
    check_asked,
    check_finished_run,
    checked_start,
    held_out_identity,
    is_evaluated,
    pretraining_settings,
    shards_identity,
)
from pipelines.runs.remarks import epochs_of, remarks
from pipelines.runs.training_run import DescribeModel, TrainingRun, check_destination, is_finished


class KeepModels(Hook):
    """Writes the model directory every so many steps; what a kill prevented is made up for.

    One that is there although the run comes to its step is of a run that went on otherwise.
    """

    def __init__(self, every: int, write: Callable[[Path], None]) -> None:
        self._every, self._write = every, write

    def after_call(self, run: Run) -> None:
        folder = kept_model(run.directory.path, run.step)
        due = run.step > 0 and run.is_due(self._every)
        if run.is_chief and due and (run.step > run.first_step or not folder.is_dir()):
            with run.state.averaged():
                self._write(folder)

    begin = after_call


_LOGGER = logging.getLogger(__name__)

_UNCHANGED = "nothing is changed, and the same command evaluates"
_KEPT = "training is finished and its model is kept, and the same command evaluates"


@dataclass(frozen=True)
class PretrainingResults:
    """The results of a run; figures and guesses are by the names of `eval_results.txt`."""

    training: TrainingResult | None = None
    already_finished: bool = False  # by an earlier call: nothing was done
    evaluation: dict[str, float] = field(default_factory=dict)
    guesses: dict[str, learning_curve.Guess] = field(default_factory=dict)
    rehearsal: list[dict[str, float]] = field(default_factory=list)  # of a step of each phase


def run_pretraining(config: RunPretrainingConfig) -> PretrainingResults:
    """Pre-trains and evaluates; the same call again resumes a run that was stopped."""
    check_asked(config)
    run = (RunDirectory if config.dry_run else RunDirectory.open)(config.output_dir)
    trains = config.do_train and not is_finished(run, config.training)
    if trains:
        check_destination(run, config.init_checkpoint)
    if config.dry_run:
        return PretrainingResults(rehearsal=_Job(config, run).rehearse())
    if config.do_train and not trains:
        check_finished_run(config, run)
        if not config.do_eval or is_evaluated(config, run):
            return PretrainingResults(
                already_finished=True,
                evaluation=run.read_eval_results() if config.do_eval else {},
                guesses=learning_curve.read_guesses(run),
            )
    with telling_of_lost_workers(config.training):
        with kept_so_far(run.kept_before_training() if trains else _UNCHANGED):
            job = _Job(config, run)
            training = job.train() if trains else None
        if training and not training.finished:
            return PretrainingResults(training)
        with kept_so_far(_KEPT if config.do_train else _UNCHANGED):
            evaluation = job.evaluate(training) if config.do_eval else {}
    return PretrainingResults(training, evaluation=evaluation, guesses=job.guesses)


def open_phases(
    configs: Sequence[PhaseConfig], text: TextSettings, model_config: BertConfig, **order: Any
) -> list[Phase]:
    """Opens the shards of every phase; compares them with the text settings and the model.

    The `order` is what `PretrainingBatches` is told of it.
    """
    phases = []
    for number, config in enumerate(configs):
        expected = _expected(config, text, model_config)
        with options_of_phase(number):
            batches = PretrainingBatches(
                list(config.input_file), config.train_batch_size, expected, **order
            )
        sizes = (config.num_train_steps, config.learning_rate, batches.num_examples)
        phases.append(Phase(batches, *sizes))
    return phases


def _expected(config: PhaseConfig, text: TextSettings, model_config: BertConfig) -> Expected:
    return Expected(
        config.max_seq_length,
        config.max_predictions_per_seq,
        text.vocabulary.sha256,
        text.do_lower_case,
        model_config,
    )


class _Job:
    """One run: its data, its model and its devices, checked before anything is computed."""

    def __init__(self, config: RunPretrainingConfig, directory: RunDirectory) -> None:
        self._config = config
        self._start = checked_start(config)
        self._model_config, self._text = self._start.config, self._start.text
        # Devices come before anything that may start TensorFlow, so that the CPU can be split.
        devices = make_devices(config.training)
        _LOGGER.info("%s", devices.describe(config.training.precision))
        self._run = TrainingRun(directory, config.training, devices, config.flags)
        self._phases = open_phases(
            config.phases(),
            self._text,
            self._model_config,
            seed=config.training.seed,
            shuffle=config.shuffle,
            worker=devices.worker,
            num_workers=devices.workers,
            targets=config.targets(),
        )
        if config.do_eval and not config.training.train_hours:
            (first, *_) = epochs_of(self._phases)
            steps = -(-first.examples // config.training.train_batch_size)
            self._run = replace(self._run, config=config.training.evaluated_each(steps))
        if config.do_train and devices.is_chief:
            self._tell_of_the_run()
        self._held_out = self._open_held_out()
        read, there = self._held_out.num_examples, self._held_out.num_records
        if config.do_eval and devices.is_chief and read < there:
            said = "Evaluated on %s of %s examples (`max_eval_steps`)."
            _LOGGER.info(said, f"{read:,}", f"{there:,}")
        # Every record that will be measured is looked at here, before hours of training.
        size = self._model_config.vocab_size
        held_out = guessing.count_answers(self._held_out.batches(), size)
        batches: Any = self._phases[0].batches
        steps = -(-batches.num_examples // batches.batch_size)
        epoch = itertools.islice(batches.batches_from(0), steps)
        counts = guessing.count_masked_tokens(epoch, size, guessing.ENOUGH_TOKENS)
        self.guesses = guessing.pretraining_guesses(counts, held_out)
        self._objective = PretrainingObjective(config.next_sentence)
        self._model, _ = self._run.build_model(
            lambda dtype: BertPretrainer(self._model_config, dtype=dtype), self._start.opened
        )
        self._model.encoder.trainable = config.train_encoder
        evaluation = Evaluation(self._model, self._objective, devices.strategy)
        self._measure = partial(evaluation, self._held_out)

    def _tell_of_the_run(self) -> None:
        """Says how often the data are read, and what is probably a mistake."""
        config, training = self._config, self._config.training
        unknown = training.train_hours or training.batch_ramp
        epochs = [] if unknown else epochs_of(self._phases)
        told = remarks(training, self._run.devices.replicas, epochs)
        for number, one in enumerate(epochs, start=1):
            if not any(one.describe() in remark for remark in told):
                _LOGGER.info("Phase %d: %s.", number, one.describe())
        if config.do_eval or training.save_best or training.early_stopping_evals:
            trained = [shards_identity(phase.input_file) for phase in config.phases()]
            if shards_identity(self._config.held_out_files) in trained:
                told.append(
                    "the evaluation reads shards that are trained on, which says little of other "
                    "text; name held-out shards with `eval_input_file`."
                )
        for remark in told:
            _LOGGER.warning("%s", remark)

    def rehearse(self) -> list[dict[str, float]]:
        state = TrainingState(self._model, self._run.config, self._run.devices)
        return rehearse(state, self._objective, self._phases, self._run.config)

    def train(self) -> TrainingResult:
        config = self._config
        return self._run.train(
            self._model,
            self._objective,
            self._phases,
            pretraining_settings(self._config, self._model_config, self._text.vocabulary.sha256),
            self._write_results,
            [
                DescribeModel(self._model, self._text),
                *standard_hooks(
                    self._measure if config.do_eval or config.training.chooses_best else None,
                    held_out=self._describe_held_out(),
                    keep_best=config.training.chooses_best,
                    at_end=float(config.do_eval),
                ),
                KeepModels(self._config.save_model_steps, self._write_model),
            ],
            options=RunPretrainingConfig,
        )

    def _open_held_out(self) -> PretrainingEvaluation:
        """The held-out examples, of the last phase's lengths."""
        config, (*before, last) = self._config, self._config.phases()
        named = {"input_file": "eval_input_file"} if config.eval_input_file else {}
        with options_of_phase(len(before)), options_named(named):
            return PretrainingEvaluation(
                list(self._config.held_out_files),
                config.eval_batch_size,
                _expected(last, self._text, self._model_config),
                max_batches=config.max_eval_steps,
                # Masked as the shards say, so that runs with other masks can be compared.
                targets=Targets(config.objective),
            )

    def _describe_held_out(self) -> str:
        losses = "" if self._config.next_sentence else ", without the next-sentence loss"
        shards = shards_identity(self._config.held_out_files)
        return f"{shards}, {self._held_out.num_examples} examples{losses}"

    def _write_results(self, result: TrainingResult) -> None:
        self._run.write_model(result, self._write_model)
        if not self._config.do_eval:  # which draws with the last evaluation
            self._draw()

    def _draw(self) -> None:
        learning_curve.write_guesses(self._run.directory, self.guesses)
        learning_curve.draw_learning_curve(self._run.directory)

    def _write_model(self, folder: Path) -> None:
        write_model_directory(folder, self._model, self._text)

    def evaluate(self, training: TrainingResult | None) -> dict[str, float]:
        step = training.step if training else self._restore_weights()
        measured = self._measure()
        more: dict[str, float] = {"global_step": step}
        if self._config.do_train:
            # Training may have been finished by an earlier call, which a stop ended here.
            best = training.best_step if training else self._run.directory.best_step()
            named = {**measured, "held_out": self._describe_held_out()}
            self._run.log_final_evaluation(step if best is None else best, named)
            if best is not None:
                more["best_step"] = best
        if self._run.devices.is_chief:  # before the card, which has the guesses, too
            self._draw()
        self._run.write_eval_results(measured, more, held_out_identity(self._config))
        return {**measured, **more}

    def _restore_weights(self) -> int:
        """Loads the run's newest weights or keeps those of `init_checkpoint`; gives their step."""
        run = self._run.directory
        weights = {"weights": [weight.value for weight in self._model.weights]}
        checkpoints = Checkpoints(
            run.checkpoints, weights, keep=1, writes=False, log=_LOGGER.warning
        )
        description = checkpoints.restore_newest(self._check_same_model, averaged=True)
        finished = run.finished_step() if run.model.is_dir() else None
        # The model may be of the best step, where the newest checkpoint is of the last one.
        if finished is not None and (description is None or description["step"] == finished):
            _LOGGER.info("%s", restore(self._model, str(run.model)).table())
            return finished
        if description:
            return description["step"]
        if not self._config.init_checkpoint:
            raise UserError(
                f"{run.path}: holds no checkpoint that `do_eval=True` could measure; name the "
                "`output_dir` of a run, or a model with `init_checkpoint`, or add `do_train=True`."
            )
        return 0

    def _check_same_model(self, description: Mapping[str, Any]) -> None:
        """Refuses weights of another model: they may fit its shapes and give wrong figures."""
        model, vocabulary = self._model_config.to_google(), self._text.vocabulary.sha256
        now = {"bert_config_file": model, "vocab_file": vocabulary}
        before = {name: description["settings"].get(name) for name in now}
        if not self._config.training.allow_changed_flags:
            check_settings(before, now, str(self._run.directory.path))
