"""Fine-tuning for a task: train, evaluate with the official metrics, predict the test sets."""

import gc
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from keras_bert_impl.checkpoints.model_directory import (
    check_adapter_folder,
    write_adapter,
    write_model_directory,
)
from keras_bert_impl.checkpoints.model_source import model_identity
from keras_bert_impl.checkpoints.restore import refuse_untrained
from keras_bert_impl.checkpoints.task_settings import keep_task_settings, with_task_settings
from keras_bert_impl.config import BertConfig
from keras_bert_impl.engines.config import TENSORFLOW
from keras_bert_impl.errors import UserError
from keras_bert_impl.interrupts import kept_so_far
from keras_bert_impl.json_files import read_log
from keras_bert_impl.models.adapters import add_adapters, freeze_loaded
from keras_bert_impl.options import made_settings, settings_of
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.training import learning_curve
from keras_bert_impl.training.batches import BatchSource, one_phase
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.evaluation import Prediction
from keras_bert_impl.training.hooks import standard_hooks
from keras_bert_impl.training.loop import TrainingResult
from keras_bert_impl.training.metric_writers import add_evaluation
from keras_bert_impl.training.run import Hook
from keras_bert_impl.training.run_directory import RunDirectory
from keras_bert_impl.training.state import TrainingState, local_copy
from keras_bert_impl.training.strategy import Devices, make_devices, telling_of_lost_workers
from pipelines.fine_tuning import row_set
from pipelines.fine_tuning.row_batches import LengthRule, RowBatches, RowEvaluation
from pipelines.fine_tuning.start import (
    AnyConfig,
    CheckedRun,
    check_run,
    check_trained,
    model_content,
    tell_of_nothing_learned,
    wanted_splits,
)
from pipelines.fine_tuning.task import Head, Task, TrainingRows, figure_prefixes
from pipelines.metrics.guessing import guesses_of
from pipelines.runs.remarks import device_remarks
from pipelines.runs.training_run import DescribeModel, TrainingRun, check_destination

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class FineTuningResults:
    """The results of a run; figures and guesses are by the names of `eval_results.txt`."""

    training: TrainingResult | None = None
    evaluation: dict[str, float] = field(default_factory=dict)
    guesses: dict[str, learning_curve.Guess] = field(default_factory=dict)
    prediction_files: list[Path] = field(default_factory=list)


@dataclass
class TracedModel:
    """The model of a command's runs, with all that was traced of it: each run gives it its weights.

    The runs differ in nothing but their seed, batch, learning rate, epochs and folder.
    """

    devices: Devices | None = None
    head: Head | None = None
    predict: row_set.Predicts | None = None
    state: TrainingState | None = None

    def with_weights_of(self, head: Head) -> Head:
        """The first run's model with the weights of another one; at first, that one."""
        if self.head is None:
            self.head = head
        else:
            pairs = zip(self.head.model.weights, head.model.weights, strict=True)
            for kept, own in pairs:
                kept.value.assign(local_copy(own.value))
        return self.head


def fine_tune(
    config: AnyConfig,
    task_of: Callable[[AnyConfig], Task[Any, Any]],
    traced: TracedModel | None = None,
) -> FineTuningResults:
    """Fine-tunes for a task, scores and predicts; the same call again resumes what was stopped.

    Training ends with `output_dir/model`; without `do_train` that model is scored, or else the one
    that `init_checkpoint` names, with the options that it keeps (`with_kept_options`). `traced` is
    that of the other runs of a command.
    """
    return fine_tune_checked(check_run(config, task_of), traced)


def fine_tune_checked(checked: CheckedRun, traced: TracedModel | None = None) -> FineTuningResults:
    """Does what `fine_tune` does, with a run that `check_run` has looked at."""
    with telling_of_lost_workers(checked.config.training):
        return _fine_tune(checked, traced or TracedModel())


def _fine_tune(checked: CheckedRun, traced: TracedModel) -> FineTuningResults:
    config = checked.config
    # Before a tokenizer, which starts TensorFlow.
    devices = traced.devices = traced.devices or make_devices(config.training)
    if config.do_train or config.engine == TENSORFLOW:  # else another engine answers
        _LOGGER.info("%s", devices.describe(config.training.precision))
        told = device_remarks(config.training, devices.replicas) if devices.is_chief else []
        for remark in told:
            _LOGGER.warning("%s", remark)
    directory = RunDirectory.open(config.output_dir)
    unchanged = "nothing is changed, and the same command begins anew"
    with kept_so_far(directory.kept_before_training() if config.do_train else unchanged):
        job = _Job(checked, directory, traced, devices)
        trained = job.train() if config.do_train else None
    if trained and not trained.finished:
        return FineTuningResults(trained)
    finished = "training is finished, its model is kept, and the same command evaluates"
    with kept_so_far(finished if config.do_train else unchanged):
        evaluation = job.evaluate(trained) if config.do_eval else {}
        found = learning_curve.read_guesses(directory) if config.do_eval else {}
        files = job.predict() if config.do_predict else []
    guesses = {f"eval_{name}": guess for name, guess in found.items()}
    return FineTuningResults(trained, evaluation, guesses, files)


class _Job:
    """One run: its rows, its model and its devices, made before anything is trained."""

    def __init__(
        self, checked: CheckedRun, directory: RunDirectory, traced: TracedModel, devices: Devices
    ) -> None:
        config, task, start = self._config, self._task, self._start = checked
        self._directory, self._devices, self._traced = directory, devices, traced
        self._kept: dict[str, row_set.RowOutputs] = {}
        self._sentence = task.sentence(config.max_seq_length)
        self._model_config = self._configured()
        self._check_start()
        tokenizer = Tokenizer(start.text)
        # All files are read before hours of training: a mistake in a test set shows at once.
        self._splits = {
            name: row_set.Split.make(task, name, tokenizer, config.max_seq_length)
            for name in wanted_splits(config, task)
        }
        self._rows = {name: split.rows for name, split in self._splits.items()}
        self._model_config.check_segments(one.rows.segment_ids for one in self._splits.values())
        training = self._splits[task.train_split].counts if config.do_train else None
        for one in self._splits.values() if devices.is_chief else ():
            one.counts.tell(training)
        self._run = TrainingRun(directory, self._training_config(), devices, config.flags)
        self._guesses = self._write_guesses() if config.do_eval else {}
        self._head = traced.with_weights_of(self._build_head())
        gc.collect()  # the model that brought the weights, which is made of circles
        self._predict = traced.predict = self._predicts()

    def _write_guesses(self) -> dict[str, dict[str, learning_curve.Guess]]:
        """Writes what guessing reaches on each split, once: log, picture and report read it."""
        prefixes = figure_prefixes(self._task.evaluation_splits)
        found = {split: guesses_of(self._task, split) for split in prefixes}
        if self._devices.is_chief:
            named = {
                f"{prefixes[split]}{name}".removeprefix("eval_"): guess
                for split, guesses in found.items()
                for name, guess in (guesses | dict(self._task.peers(split))).items()
            }
            learning_curve.write_guesses(self._directory, named)
        return found

    def _predicts(self) -> row_set.Predicts:
        head = self._head
        if self._config.engine == TENSORFLOW:
            if self._traced.predict:
                return self._traced.predict
            return Prediction(head.model, head.objective.input_names, self._devices.strategy)
        rows = next(iter(self._rows.values()))
        return row_set.engine_prediction(self._config, head, self._start, rows)

    def _configured(self) -> BertConfig:
        config = self._task.configure(self._config.configure(self._start.config))
        settings = {**self._task.settings, **self._task.answer_options}
        settings |= {"task": self._task.name, "max_seq_length": self._config.max_seq_length}
        settings |= self._config.kept_in_model(self._task)
        return with_task_settings(config, settings)

    def _calibrate(self, scores: Mapping[str, float]) -> None:
        """Answers from now on as the scores recommend, and so does the run's own model, served."""
        before = self._task.answer_options
        self._task = self._task.calibrated(scores)
        found = self._task.answer_options
        changed = {name: found[name] for name in found if found[name] != before.get(name)}
        if changed and self._devices.is_chief:
            if self._directory.model.is_dir():
                keep_task_settings(self._directory.model, changed)
            _LOGGER.info("answers are chosen with %s from now on", changed)

    def _check_start(self) -> None:
        """Refuses, before anything is tokenized, what can be known to end in a refusal."""
        self._directory.check_names()
        if not self._config.do_train:
            check_trained(self._directory, self._start, self._model_config, self._task.name)
        elif self._directory.finished_step() is None:
            self._check_destination()

    def _check_destination(self) -> None:
        check_destination(self._directory, self._start.checkpoint)
        if self._config.adapters.lora_rank:
            check_adapter_folder(self._directory.adapter)

    def _build_head(self) -> Head:
        heads: list[Head] = []
        adapts = self._config.do_train and self._config.adapters.lora_rank

        def make(dtype: str) -> Any:
            heads.append(self._task.head(self._model_config, dtype))
            if adapts:
                add_adapters(heads[-1].model, self._config.adapters)
            return heads[-1].model

        model, report = self._run.build_model(make, self._start.opened)
        if report is None:
            _LOGGER.warning("No `init_checkpoint`: the model starts from random weights.")
            return heads[-1]
        if not self._config.do_train:
            remedy = "add `do_train=True` or name a fine-tuned model"
            refuse_untrained(model, report, f"head for {self._task.name}", remedy)
        self._task.restored(model, self._start)
        if adapts:
            freeze_loaded(model, report.loaded)
        return heads[-1]

    def train(self) -> TrainingResult:
        rows, training = self._rows[self._task.train_split], self._run.config
        if not self._directory.is_written(training.num_train_steps):
            self._check_destination()
        batches = self._batches(rows, training)
        self._evaluate_start()
        model, objective = self._head.model, self._head.objective
        phases = one_phase(batches, training, self._task.num_training_rows(rows))
        hooks = [DescribeModel(model, self._start.text, self._sentence), *self._hooks()]
        result = self._run.train(
            model,
            objective,
            phases,
            settings=self._settings(rows),
            write_results=self._write_model,
            hooks=hooks,
            options=type(self._config),
            state=self._traced.state,
        )
        self._traced.state = result.state
        return result

    def _batches(self, rows: row_set.RowSet, training: TrainingConfig) -> BatchSource:
        size, seed, rule = training.train_batch_size, training.seed, self._length_rule(training)
        outputs = partial(self._outputs, self._task.train_split, self._config.eval_batch_size)
        replicas, folder = self._devices.replicas, self._directory.path
        start = self._config.init_checkpoint
        identity = f"{rows.identity} {start and model_identity(start)}"
        made = TrainingRows(rows, size, seed, rule, replicas, folder, identity, outputs)
        return self._task.batches(made) or RowBatches(rows, size, seed, rule)

    @property
    def _main(self) -> str:
        return self._task.evaluation_splits[0]

    @property
    def _held_out(self) -> dict[str, str]:
        """What figures of the main split depend on besides the model."""
        return {"held_out": self._rows[self._main].identity + self._task.identity(self._main)}

    def _evaluate_start(self) -> None:
        """Keeps the figures of the model that training starts from, as those of step 0."""
        asked = self._task.evaluates_start and self._config.do_eval
        if asked and self._directory.newest_step() == 0 and not self._start_figures():
            figures = self._score(self._main) | self._held_out
            if self._devices.is_chief:
                add_evaluation(self._directory, 0, figures)

    def _start_figures(self) -> dict[str, float]:
        """The figures before the first step, where the task has some."""
        if not self._task.evaluates_start:
            return {}
        lines = [one for one in read_log(self._directory.evaluations) if one["step"] == 0]
        found = next((one for one in lines if self._held_out.items() <= one.items()), {})
        compared = [name for name in self._task.compared_figures if name in found]
        return {name: found[name] for name in compared if isinstance(found[name], float)}

    def _write_model(self, result: TrainingResult) -> None:
        def write(folder: Path) -> None:
            model, text, how = self._head.model, self._start.text, self._config.adapters
            write_model_directory(folder, model, text, sentence=self._sentence)
            if how.lora_rank:
                base = model_identity(str(self._config.init_checkpoint))
                write_adapter(self._directory.adapter, model, text, how, base, self._sentence)

        self._run.write_model(result, write)
        if not self._config.do_eval:  # which draws it with the last evaluation
            self._draw()

    def _draw(self) -> None:
        learning_curve.draw_learning_curve(self._directory, self._task.curve_style)

    def evaluate(self, training: TrainingResult | None) -> dict[str, float]:
        prefixes = figure_prefixes(self._task.evaluation_splits)
        scores = {split: self._score(split, final=True) for split in prefixes}
        figures = {
            f"{prefixes[split]}{name}": value
            for split, found in scores.items()
            for name, value in found.items()
        }
        more = dict[str, float]()
        if training is not None:
            measured = scores[self._main] | self._held_out
            self._run.log_final_evaluation(training.weights_step, measured, self._best_by)
            more["global_step"] = training.step
            more |= {f"start_{name}": one for name, one in self._start_figures().items()}
            if training.best_step is not None:
                more["best_step"] = training.best_step
        self._run.write_eval_results(figures, more)
        if self._devices.is_chief:
            self._draw()
        return figures | more

    def predict(self) -> list[Path]:
        files: list[Path] = []
        for split in self._task.test_splits:
            outputs = self._kept.pop(split, None)
            if outputs is None:
                outputs = self._outputs(split, self._config.predict_batch_size)
            if self._devices.is_chief:
                answered = row_set.AnsweredSplit(self._task, self._splits[split], outputs)
                files += self._task.write(self._directory.path, split, answered)
        return files

    def _outputs(self, split: str, batch_size: int) -> row_set.RowOutputs:
        source = RowEvaluation(self._rows[split], batch_size, self._length_rule())
        return row_set.compute_outputs(split, self._rows[split], source, self._predict, self._head)

    def _score(self, split: str, *, final: bool = False) -> dict[str, float]:
        """The mean loss and the metrics of a split; final ones decide how answers are chosen."""
        rows, head = self._rows[split], self._head
        outputs = self._outputs(split, self._config.eval_batch_size)
        if final and self._config.do_predict and split in self._task.test_splits:
            self._kept[split] = outputs
        loss = row_set.mean_loss(self._task, head.objective, rows, outputs, head.labels)
        answered = row_set.AnsweredSplit(self._task, self._splits[split], outputs)
        scores = self._task.score(answered)
        if final:
            if split == self._main:
                self._calibrate(scores)
            if self._devices.is_chief:
                self._task.illustrate(self._directory.path, split, answered)
            tell_of_nothing_learned(self._task, split, scores, self._guesses[split])
        return {**({} if loss is None else {"loss": loss}), **scores}

    def _hooks(self) -> list[Hook]:
        training = self._run.config
        evaluates = training.steps_between_evaluations or training.train_hours
        if not (self._config.do_eval and evaluates):
            return standard_hooks()
        answered = sum(len(self._rows[one]) for one in set(self._rows) - {self._task.train_split})
        return standard_hooks(
            lambda: self._score(self._main),
            **self._held_out,
            best_by=self._best_by,
            keep_best=self._config.training.chooses_best,
            at_end=answered / max(len(self._rows[self._main]), 1),
        )

    @property
    def _best_by(self) -> str:
        """The loss, or the figure that decides where the rows have no labels for it."""
        missing = row_set.missing_labels(self._rows[self._main], self._head.labels)
        compared = missing and self._task.compared_figures
        return compared[0] if compared else "loss"

    def _length_rule(self, training: TrainingConfig | None = None) -> LengthRule:
        """The lengths of batches, of training or of a pass over a split."""
        tpu = self._config.training.distribution_strategy == "tpu"  # which compiles for minutes
        several = training is not None and training.iterations_per_loop > 1
        if tpu or several or not self._config.trim_padding:
            return LengthRule(fixed=self._config.max_seq_length)
        if training is None and not self._config.do_train and self._config.engine != TENSORFLOW:
            return LengthRule()  # which needs nothing for another length
        # Hours are of an unknown number of steps: an epoch decides how many lengths pay.
        steps = training.num_train_steps if training and not training.train_hours else None
        return LengthRule.of_model(self._start.config, steps)

    def _training_config(self) -> TrainingConfig:
        """The steps and the warm-up that the epochs make."""
        config, training = self._config, self._config.training
        if not config.do_train:
            return training
        if training.train_hours:
            return replace(training, warmup_proportion=config.warmup_proportion)
        rows = self._rows[self._task.train_split]
        count = self._task.num_training_rows(rows)
        steps = int(count / training.train_batch_size * config.num_train_epochs)
        if steps < 1:
            unit = "examples" if count == rows.num_examples else "rows"
            raise UserError(
                f"{count} {unit} in {config.num_train_epochs} epochs of batches of "
                f"{training.train_batch_size} make no step; lower `train_batch_size` or raise "
                "`num_train_epochs`."
            )
        warmup = int(steps * config.warmup_proportion)
        training = replace(training, num_train_steps=steps, num_warmup_steps=warmup)
        if not config.do_eval:
            return training
        # Rounded up: the last epoch's evaluation is that of the end, not one a few steps before.
        return training.evaluated_each(-(-count // training.train_batch_size))

    def _settings(self, rows: row_set.RowSet) -> dict[str, Any]:
        """The settings that a resumed run must share, besides those of training."""
        checkpoint = self._config.init_checkpoint
        return {
            **settings_of(self._config),
            **{name: getattr(self._config, name) for name in made_settings(type(self._config))},
            **self._task.settings,
            "task_name": self._task.name,
            "training_data": rows.identity,
            "init_checkpoint": checkpoint and model_identity(checkpoint),
            "init_checkpoint_content": checkpoint and model_content(self._start),
            "do_lower_case": self._start.text.do_lower_case,
            "vocabulary_sha256": self._start.text.vocabulary.sha256,
            "model": self._start.config.to_google(),
        }
