"""Fine-tuning for a task: train, evaluate with the official metrics, predict the test sets."""

import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.checkpoints.model_source import ModelSource, find_model, model_identity
from keras_bert_impl.checkpoints.task_settings import (
    keep_task_settings,
    task_settings,
    with_task_settings,
)
from keras_bert_impl.config import BertConfig
from keras_bert_impl.engines.config import TENSORFLOW
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import make_folder, without_links
from keras_bert_impl.interrupts import kept_so_far
from keras_bert_impl.options import made_settings, settings_of
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.evaluation import Prediction
from keras_bert_impl.training.guesses import Guess, write_guesses
from keras_bert_impl.training.hooks import standard_hooks
from keras_bert_impl.training.learning_curve import CurveStyle, draw_learning_curve
from keras_bert_impl.training.loop import TrainingResult
from keras_bert_impl.training.phases import one_phase
from keras_bert_impl.training.run import Hook
from keras_bert_impl.training.run_directory import RunDirectory
from keras_bert_impl.training.strategy import Devices, make_devices
from pipelines.fine_tuning.options import FineTuningConfig
from pipelines.fine_tuning.outputs import (
    Predicts,
    SplitOutputs,
    engine_prediction,
    log_padding,
)
from pipelines.fine_tuning.start import (
    AnyConfig,
    CheckedRun,
    check_head_is_trained,
    check_run,
    check_trained,
    wanted_splits,
)
from pipelines.fine_tuning.task import (
    Calibrated,
    ComparedTask,
    Drawn,
    Guessable,
    Head,
    Illustrated,
    ScoredWithoutLoss,
    Task,
    figure_prefixes,
)
from pipelines.fine_tuning.task_data import (
    AnsweredSplit,
    TaskData,
    mean_loss,
    missing_labels,
)
from pipelines.inputs.row_batches import RowBatches
from pipelines.metrics.guessing import CONSTANT, AnswerVariety
from pipelines.records.row_set import RowSet
from pipelines.runs.remarks import RunFacts, device_remarks
from pipelines.runs.training_run import (
    DescribeModel,
    TrainingRun,
    check_destination,
)

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class FineTuningResults:
    """The results of a run.

    Attributes:
        training: how training ended; None without `do_train`.
        evaluation: the figures of `eval_results.txt`.
        guesses: what guessing reaches, by the names of `evaluation`.
        prediction_files: the written answers.
    """

    training: TrainingResult | None = None
    evaluation: dict[str, float] = field(default_factory=dict)
    guesses: dict[str, Guess] = field(default_factory=dict)
    prediction_files: list[Path] = field(default_factory=list)


def fine_tune(
    config: AnyConfig, task_of: Callable[[AnyConfig], Task[Any, Any]]
) -> FineTuningResults:
    """Fine-tunes for a task, scores and predicts, as the configuration says.

    The same call again resumes a run that was stopped. Training ends with `output_dir/model`;
    without `do_train` that model is scored, or else the one that `init_checkpoint` names, with the
    options that it keeps (`with_kept_options`).
    """
    return fine_tune_checked(check_run(config, task_of))


def fine_tune_checked(checked: CheckedRun[Any]) -> FineTuningResults:
    """Does what `fine_tune` does, with a run that `check_run` has looked at."""
    config, task, start = checked.config, checked.task, checked.start
    devices = make_devices(config.training)  # before a tokenizer, which starts TensorFlow
    _tell_of_devices(config, devices)
    directory = RunDirectory.open(config.output_dir)
    with ExitStack() as outputs:
        unchanged = "nothing is changed, and the same command begins anew"
        with kept_so_far(directory.kept_before_training() if config.do_train else unchanged):
            job = _Job(config, task, directory, start, devices, outputs)
            trained = job.train() if config.do_train else None
        results = FineTuningResults(trained)
        if trained and not trained.finished:
            return results
        if config.do_eval:
            with kept_so_far(_kept(config, "evaluates")):
                figures = job.evaluate(results.training)
            results = replace(results, evaluation=figures, guesses=job.guesses())
        if config.do_predict:
            again = "evaluates again and predicts" if config.do_eval else "predicts"
            with kept_so_far(_kept(config, again)):
                results = replace(results, prediction_files=job.predict())
        return results


def _kept(config: FineTuningConfig, does: str) -> str:
    """What a stop after training leaves, and what the same command does then."""
    if config.do_train:
        return f"training is finished and its model is kept, and the same command {does}"
    return f"nothing is changed, and the same command {does}"


def _tell_of_devices(config: FineTuningConfig, devices: Devices) -> None:
    """Says what computes, and what about it is probably a mistake."""
    if config.engine != TENSORFLOW and not config.do_train:
        return  # another engine answers
    _LOGGER.info("%s", devices.describe(config.training.precision))
    facts = RunFacts.of(config.training, devices)
    for remark in device_remarks(facts) if devices.is_chief else ():
        _LOGGER.warning("%s", remark)


class _Job:
    """One run: its rows, its model and its devices, made before anything is trained."""

    def __init__(
        self,
        config: FineTuningConfig,
        task: Task[Any, Any],
        directory: RunDirectory,
        start: ModelSource,
        devices: Devices,
        outputs: ExitStack,
    ) -> None:
        self._config, self._task, self._start = config, task, start
        self._directory, self._devices = directory, devices
        self._guesses: dict[str, Mapping[str, Guess]] = {}
        self._work = _work_folder(config, directory, devices)
        self._model_config = self._configured(start.config)
        self._check_start()
        self._data = TaskData(
            task, Tokenizer(start.text), config.max_seq_length, self._work, config.file_encoding
        )
        # All files are read before hours of training: a mistake in a test set shows at once.
        self._rows = {split: self._data.rows(split) for split in wanted_splits(config, task)}
        if config.do_train and (words := self._rows[task.train_split].word_count):
            _LOGGER.info("%s: %s are [UNK]", task.train_split, words)
        self._run = TrainingRun(directory, self._training_config(), devices, config.flags)
        self._head = self._build_head(start, self._model_config)
        predict = self._predicts(self._head, start)
        fixed = None if self._trims() else config.max_seq_length
        self._outputs = outputs.enter_context(
            SplitOutputs(self._work, self._rows, predict, self._head, fixed)
        )

    def _predicts(self, head: Head, source: ModelSource) -> Predicts:
        names = head.objective.input_names
        if self._config.engine == TENSORFLOW:
            return Prediction(head.model, names, self._devices.strategy)
        rows = self._rows[wanted_splits(self._config, self._task)[0]]
        return engine_prediction(self._config, head, source, rows)

    def _configured(self, config: BertConfig) -> BertConfig:
        """A model's configuration with what the task and the options say."""
        config = self._task.configure(self._config.configure(config))
        settings = {**self._task.settings, **self._answer_options()}
        settings |= {"task": self._task.name, "max_seq_length": self._config.max_seq_length}
        settings |= self._config.kept_in_model(self._task)
        return with_task_settings(config, settings)

    def _answer_options(self) -> Mapping[str, Any]:
        return self._task.answer_options if isinstance(self._task, Calibrated) else {}

    def _calibrate(self, task: Calibrated, scores: Mapping[str, float]) -> None:
        """Answers from now on as the scores recommend, and so does the run's own model, served."""
        before = self._answer_options()
        self._task = task.calibrated(scores)
        found = self._answer_options()
        changed = {name: found[name] for name in found if found[name] != before.get(name)}
        if not changed or not self._devices.is_chief:
            return
        values = ", ".join(f"{name} = {value}" for name, value in changed.items())
        if self._directory.model.is_dir():
            keep_task_settings(self._directory.model, changed)
            _LOGGER.info("%s keeps %s, and is served with it", self._directory.model, values)
        else:
            _LOGGER.warning(
                "%s holds for this command only, because it evaluates no model of its own folder.",
                values,
            )

    def _tell_of_kept_options(self) -> None:
        """Warns where a finished run answers otherwise than its model, which keeps what it has."""
        kept = task_settings(find_model(str(self._directory.model)).config)
        for name, value in self._answer_options().items():
            if name in kept and kept[name] != value:
                _LOGGER.warning(
                    "`%s=%s` stands in place of %s, which %s keeps and is served with; served "
                    "answers may differ from those of this run.",
                    *(name, value, kept[name], self._directory.model),
                )

    def _check_start(self) -> None:
        """Refuses, before anything is tokenized, what can be known to end in a refusal."""
        self._directory.check_names()
        if not self._config.do_train:
            check_trained(self._directory, self._start, self._model_config, self._task.name)
        elif self._directory.finished_step() is None:
            check_destination(self._directory, self._start.checkpoint)

    def _build_head(self, source: ModelSource, config: BertConfig) -> Head:
        """Builds the task's model with a checkpoint's weights."""
        heads: list[Head] = []

        def make(dtype: str) -> Any:
            heads.append(self._task.head(config, dtype))
            return heads[-1].model

        _, report = self._run.build_model(make, source.checkpoint)
        if report is None:
            _LOGGER.warning("No `init_checkpoint`: the model starts from random weights.")
        else:
            if not self._config.do_train:
                check_head_is_trained(report, source, self._task.name)
        return heads[-1]

    def train(self) -> TrainingResult:
        """Trains to the end, or as far as it is let, and writes the model when finished."""
        rows, training = self._rows[self._task.train_split], self._run.config
        if not self._run.is_written(training.num_train_steps):
            check_destination(self._directory, self._start.checkpoint)
        batches = RowBatches(
            rows,
            training.train_batch_size,
            training.seed,
            fixed_length=self._fixed_length(training),
            by_length=self._config.group_by_length,
        )
        log_padding(self._task.train_split, batches.padding_share())
        result = self._run.train(
            self._head.model,
            self._head.objective,
            one_phase(batches, training),
            self._settings(rows),
            self._write_model,
            [DescribeModel(self._head.model, self._start.text), *self._hooks()],
            options=type(self._config),
        )
        if result.finished and not result.is_new:
            self._tell_of_kept_options()
        return result

    def _write_model(self, result: TrainingResult) -> None:
        self._run.write_model(
            result,
            lambda folder: write_model_directory(folder, self._head.model, self._start.text),
        )
        self._draw()

    def _draw(self) -> None:
        """Draws the run's figures as they stand, beside what guessing reaches."""
        if self._config.do_eval:
            write_guesses(self._directory, self._guesses_of(self._task.evaluation_splits[0]))
        draw_learning_curve(self._directory, _curve_style(self._task))

    def guesses(self) -> dict[str, Guess]:
        """What guessing reaches, by the names of the figures in `eval_results.txt`."""
        return {
            f"{prefix}{name}": guess
            for split, prefix in figure_prefixes(self._task.evaluation_splits).items()
            for name, guess in self._guesses_of(split).items()
        }

    def _guesses_of(self, split: str) -> Mapping[str, Guess]:
        """What guessing reaches on a labelled split, whose file is read for it once."""
        if split not in self._guesses and isinstance(self._task, Guessable):
            self._guesses[split] = self._task.guesses(split)
        return self._guesses.get(split, {})

    def evaluate(self, training: TrainingResult | None) -> dict[str, float]:
        """Scores the evaluation splits and writes `eval_results.txt`."""
        prefixes = figure_prefixes(self._task.evaluation_splits)
        scores = {split: self._score(split, final=True) for split in prefixes}
        figures = {
            f"{prefixes[split]}{name}": value
            for split, found in scores.items()
            for name, value in found.items()
        }
        if training is not None:
            self._keep_final_figures(training, scores[self._task.evaluation_splits[0]])
            figures["global_step"] = training.step
            if training.best_step is not None:
                figures["best_step"] = training.best_step
        self._run.write_eval_results(figures)
        if self._devices.is_chief:
            self._draw()
        return figures

    def _keep_final_figures(self, training: TrainingResult, figures: Mapping[str, float]) -> None:
        """Adds the main split's figures to those of the evaluations during training."""
        held_out = self._rows[self._task.evaluation_splits[0]].identity
        self._run.log_final_evaluation(training.weights_step, {**figures, "held_out": held_out})

    def predict(self) -> list[Path]:
        """Answers the test splits and writes the files."""
        files: list[Path] = []
        for split in self._task.test_splits:
            with self._outputs.of(split, self._config.predict_batch_size) as outputs:
                if self._devices.is_chief:
                    answered = AnsweredSplit(self._task, split, self._rows[split], outputs)
                    files += self._task.write(self._directory.path, split, answered)
        return files

    def _score(self, split: str, *, final: bool = False) -> dict[str, float]:
        """The mean loss over a whole split, and the task's metrics.

        The final scores of the main split also decide how answers are chosen from then on.
        """
        rows, head = self._rows[split], self._head
        keep = final and self._config.do_predict and split in self._task.test_splits
        with self._outputs.of(split, self._config.eval_batch_size, keep=keep) as outputs:
            loss = mean_loss(self._task, head.objective, rows, outputs, head.labels)
            answered = AnsweredSplit(self._task, split, rows, outputs)
            scores = self._task.score(answered)
            main = split == self._task.evaluation_splits[0]
            if final and main and isinstance(self._task, Calibrated):
                self._calibrate(self._task, scores)
            if final and self._devices.is_chief and isinstance(self._task, Illustrated):
                self._task.illustrate(self._directory.path, split, answered)
            if final and isinstance(self._task, ComparedTask):
                scores = {**scores, **_constant_scores(self._task, split, answered)}
        return {**({} if loss is None else {"loss": loss}), **scores}

    def _hooks(self) -> list[Hook]:
        """Gives the hooks; `eval_steps` scores the main evaluation split."""
        asked = self._config.training.chooses_best
        if not (self._config.do_eval and self._run.config.steps_between_evaluations):
            return standard_hooks()
        split, best_by = self._task.evaluation_splits[0], "loss"
        if missing := missing_labels(self._rows[split], self._head.labels):
            if not isinstance(self._task, ScoredWithoutLoss):
                if not asked:
                    return standard_hooks()
                raise UserError(
                    f"`eval_steps` needs a loss, but the rows of the split {split} have no "
                    f"{', '.join(missing)}; leave `eval_steps` at 0 to evaluate after training "
                    "only."
                )
            best_by = self._task.deciding_figure
        return standard_hooks(
            lambda: self._score(split),
            held_out=self._rows[split].identity,
            best_by=best_by,
            keep_best=asked,
        )

    def _fixed_length(self, training: TrainingConfig) -> int | None:
        """The common length of training batches, where one compiled call takes several."""
        varies = self._trims() and training.iterations_per_loop == 1
        return None if varies else self._config.max_seq_length

    def _trims(self) -> bool:
        """Whether batches may differ in length: not on a TPU, which compiles each for minutes."""
        tpu = self._config.training.distribution_strategy == "tpu"
        return self._config.trim_padding and not tpu

    def _training_config(self) -> TrainingConfig:
        """The steps and the warm-up that the epochs make."""
        config, training = self._config, self._config.training
        if not config.do_train:
            return training
        rows = self._rows[self._task.train_split]
        steps = int(len(rows) / training.train_batch_size * config.num_train_epochs)
        if steps < 1:
            unit = "examples" if len(rows) == rows.num_examples else "rows"
            raise UserError(
                f"{len(rows)} {unit} in {config.num_train_epochs} epochs of batches of "
                f"{training.train_batch_size} make no step; lower `train_batch_size` or raise "
                "`num_train_epochs`."
            )
        warmup = int(steps * config.warmup_proportion)
        training = replace(training, num_train_steps=steps, num_warmup_steps=warmup)
        if not config.do_eval:
            return training
        # Rounded up: the last epoch's evaluation is that of the end, not one a few steps before.
        return training.evaluated_each(-(-len(rows) // training.train_batch_size))

    def _settings(self, rows: RowSet) -> dict[str, Any]:
        """Gives the settings that a resumed run must share, besides those of training."""
        checkpoint = self._config.init_checkpoint
        return {
            **settings_of(self._config),
            **{name: getattr(self._config, name) for name in made_settings(type(self._config))},
            **self._task.settings,
            "task_name": self._task.name,
            "training_data": rows.identity,
            "init_checkpoint": checkpoint and model_identity(checkpoint),
            "do_lower_case": self._start.text.do_lower_case,
            "vocabulary_sha256": self._start.text.vocabulary.sha256,
            "model": self._start.config.to_google(),
        }


def _constant_scores(
    task: ComparedTask[Any, Any], split: str, answered: AnsweredSplit
) -> dict[str, float]:
    """The figures of one answer to every example, where the model's answers are all alike."""
    variety = AnswerVariety()
    for example, answer in answered:
        for pair in task.compared_answers(example, answer):
            variety.add(*pair)
        if variety.varies:
            break  # after a few examples of nearly every model
    if not variety.is_constant:
        return {}
    scores = dict(task.constant_scores(split))
    _LOGGER.warning(
        "%s: the model gives one answer, %s, to all %d; it tells nothing apart. The best single "
        "answer to everything has %s. Train with a smaller `learning_rate`, longer, or with "
        "another `seed`.",
        *(split, repr(variety.answer), variety.count),
        ", ".join(f"{name} = {score:.4f}" for name, score in scores.items()),
    )
    return {f"{CONSTANT}{name}": score for name, score in scores.items()}


def _curve_style(task: Task[Any, Any]) -> CurveStyle:
    """How a task's figures are drawn."""
    if isinstance(task, Drawn):
        return task.curve_style
    return CurveStyle(task.compared_figures if isinstance(task, ComparedTask) else ())


def _work_folder(config: FineTuningConfig, run: RunDirectory, devices: Devices) -> Path:
    """Where rows and outputs stand; each worker makes its own."""
    folder = config.work_dir or without_links(run.path / "work")
    return make_folder(
        folder if devices.is_chief else without_links(folder / f"worker-{devices.worker}")
    )
