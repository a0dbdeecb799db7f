"""Fine-tuning for a task: train, evaluate with the official metrics, predict the test sets."""

import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_bert_impl.checkpoints.model_directory import label_names, write_model_directory
from keras_bert_impl.checkpoints.restore import RestoreReport
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.training.batches import ArrayBatches, ArrayEvaluation, Batch
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.evaluation import predict
from keras_bert_impl.training.hooks import standard_hooks
from keras_bert_impl.training.loop import TrainingResult
from keras_bert_impl.training.padding import trim_padding
from keras_bert_impl.training.phases import one_phase
from keras_bert_impl.training.run_directory import RunDirectory
from keras_bert_impl.training.strategy import make_devices
from pipelines.runs.training_run import TrainingRun, check_destination
from pipelines.tasks.glue import find_task
from pipelines.tasks.starting_point import StartingPoint, find_starting_point
from pipelines.tasks.task import Example, Task

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RunClassifierConfig:
    """What a fine-tuning run is told; the defaults are the original's.

    Attributes:
        task_name: a task of the catalogue.
        data_dir: the folder with the task's files.
        output_dir: the run directory.
        do_train: fine-tune on the training split.
        do_eval: score the evaluation splits.
        do_predict: answer the test splits.
        init_checkpoint: a model directory or the prefix of a TF1 checkpoint; None for new weights.
        bert_config_file: google's form of the configuration; None takes the model directory's.
        vocab_file: the vocabulary; None takes the model directory's.
        do_lower_case: the casing; None takes the model directory's.
        max_seq_length: pieces of an example; longer ones are cut.
        eval_batch_size: examples computed at once when scoring.
        predict_batch_size: examples computed at once when answering.
        trim_padding: cut each batch behind its longest example; see `training.padding`.
        num_train_epochs: passes over the training split.
        warmup_proportion: share of the steps over which the learning rate rises.
        training: everything else about training; its steps and warm-up are computed here.
        flags: the command as a flag file, to be kept in the run directory.
    """

    task_name: str
    data_dir: Path
    output_dir: Path
    do_train: bool = False
    do_eval: bool = False
    do_predict: bool = False
    init_checkpoint: str | None = None
    bert_config_file: str | None = None
    vocab_file: str | None = None
    do_lower_case: bool | None = None
    max_seq_length: int = 128
    eval_batch_size: int = 8
    predict_batch_size: int = 8
    trim_padding: bool = True
    num_train_epochs: float = 3.0
    warmup_proportion: float = 0.1
    training: TrainingConfig
    flags: str = ""


@dataclass(frozen=True)
class ClassifierResults:
    """What a run gave.

    Attributes:
        training: how training ended; None without `do_train`.
        evaluation: the figures of `eval_results.txt`.
        prediction_files: the written answers.
    """

    training: TrainingResult | None = None
    evaluation: dict[str, float] = field(default_factory=dict)
    prediction_files: list[Path] = field(default_factory=list)


def run_classifier(config: RunClassifierConfig) -> ClassifierResults:
    """Fine-tunes, scores and predicts, as the configuration says.

    The same call again resumes a run that was stopped. Training ends with `output_dir/model`;
    without `do_train` that model is scored, or else the one that `init_checkpoint` names.

    Raises:
        UserError: a flag, a file or a checkpoint is not what it should be.
    """
    if not (config.do_train or config.do_eval or config.do_predict):
        raise UserError("nothing to do; give --do_train, --do_eval or --do_predict.")
    task = find_task(config.task_name)
    devices = make_devices(config.training)  # first of all: a tokenizer already starts TensorFlow
    run = RunDirectory.open(config.output_dir)
    start = _starting_point(config, run)
    start.check_length(config.max_seq_length)
    job = _Job(config, task, TrainingRun(run, config.training, devices, config.flags), start)
    splits = _read_splits(config, task)
    model = job.build_model()
    results = ClassifierResults()
    if config.do_train:
        trained = job.train(model, splits)
        results = replace(results, training=trained)
        if not trained.finished:
            return results
    if config.do_eval:
        results = replace(results, evaluation=job.evaluate(model, splits, results.training))
    if config.do_predict:
        results = replace(results, prediction_files=job.predict(model, splits))
    return results


def _read_splits(config: RunClassifierConfig, task: Task) -> dict[str, list[Example]]:
    """Reads all files before hours of training: a mistake in a test set shows at once."""
    wanted = [task.train_split] if config.do_train else []
    wanted += task.evaluation_splits if config.do_eval else ()
    wanted += task.test_splits if config.do_predict else ()
    return {split: task.examples(config.data_dir, split) for split in wanted}


def _starting_point(config: RunClassifierConfig, run: RunDirectory) -> StartingPoint:
    """The given checkpoint; without training, the run's own model where there is one."""
    checkpoint = config.init_checkpoint
    if not config.do_train and run.model.is_dir():
        checkpoint = str(run.model)
    return find_starting_point(
        checkpoint, config.bert_config_file, config.vocab_file, config.do_lower_case
    )


class _Job:
    """The steps of one run, which all need the same five things."""

    def __init__(
        self,
        config: RunClassifierConfig,
        task: Task,
        run: TrainingRun,
        start: StartingPoint,
    ) -> None:
        self._config, self._task, self._run, self._start = config, task, run, start
        self._directory, self._devices = run.directory, run.devices
        self._tokenizer = start.tokenizer()
        self._finish: Callable[[Batch], Batch] = trim_padding if self._trims() else dict

    def build_model(self) -> keras.Model:
        """Builds the task's model with the checkpoint's weights."""
        config = self._task.configure(self._start.config)
        if not self._config.do_train:
            self._check_labels(config)
        if self._start.checkpoint is None and not self._config.do_train:
            raise UserError(
                f"{self._directory.path}: holds no trained model to score (no "
                f"{self._directory.model.name}/); add --do_train, or name a fine-tuned model with "
                "--init_checkpoint."
            )
        model, report = self._run.build_model(
            lambda dtype: self._task.build_model(config, dtype), self._start.checkpoint
        )
        if report is None:
            _LOGGER.warning("No --init_checkpoint: the model starts from random weights.")
        else:
            self._check_restored(report)
        return model

    def train(self, model: keras.Model, splits: Mapping[str, list[Example]]) -> TrainingResult:
        """Trains to the end, or as far as it is let, and writes the model when finished."""
        examples = splits[self._task.train_split]
        training = self._training_config(len(examples))
        run = replace(self._run, config=training)
        if not run.is_written(training.num_train_steps):
            check_destination(self._directory, self._start.checkpoint)
        features = self._features(examples)
        batches = ArrayBatches(
            features, training.train_batch_size, training.seed, finish=self._finish
        )
        return run.train(
            model,
            self._task.objective(),
            one_phase(batches, training),
            self._settings(features),
            lambda result: run.write_model(
                result, lambda folder: write_model_directory(folder, model, self._start.text)
            ),
            standard_hooks(self._evaluation_while_training(model, splits)),
        )

    def evaluate(
        self,
        model: keras.Model,
        splits: Mapping[str, list[Example]],
        training: TrainingResult | None,
    ) -> dict[str, float]:
        """Scores the evaluation splits and writes `eval_results.txt`."""
        figures: dict[str, float] = {}
        for split in self._task.evaluation_splits:
            scores = self._score(model, splits[split], self._features(splits[split]))
            # The main split's figures are called as in the original: eval_loss, eval_accuracy.
            middle = f"{split.removeprefix('dev_')}_" if figures else ""
            figures |= {f"eval_{middle}{name}": value for name, value in scores.items()}
        if training is not None:
            figures["global_step"] = training.step
        self._run.write_eval_results(figures)
        return figures

    def predict(self, model: keras.Model, splits: Mapping[str, list[Example]]) -> list[Path]:
        """Answers the test splits and writes the files."""
        files: list[Path] = []
        for split in self._task.test_splits:
            features = self._features(splits[split])
            source = ArrayEvaluation(features, self._config.predict_batch_size, self._finish)
            outputs = predict(model, source, strategy=self._devices.strategy)
            if self._devices.is_chief:
                files += self._task.write_predictions(
                    self._directory.path, split, splits[split], outputs
                )
        return files

    def _features(self, examples: list[Example]) -> dict[str, np.ndarray]:
        return self._task.features(examples, self._tokenizer, self._config.max_seq_length)

    def _score(
        self,
        model: keras.Model,
        examples: list[Example],
        features: dict[str, np.ndarray],
    ) -> dict[str, float]:
        """The mean loss over a whole split, and the task's metrics."""
        source = ArrayEvaluation(features, self._config.eval_batch_size, self._finish)
        outputs = predict(model, source, strategy=self._devices.strategy)
        objective = self._task.objective()
        loss, _ = objective.loss(outputs, features, objective.normalizers(features))
        return {"loss": float(loss), **self._task.score(examples, outputs)}

    def _evaluation_while_training(
        self, model: keras.Model, splits: Mapping[str, list[Example]]
    ) -> Callable[[], Mapping[str, float]] | None:
        """What `--eval_steps` calls: the score of the main evaluation split."""
        split = self._task.evaluation_splits[0]
        if not (self._config.do_eval and self._config.training.eval_steps):
            return None
        features = self._features(splits[split])
        return lambda: self._score(model, splits[split], features)

    def _trims(self) -> bool:
        """Whether batches may differ in length: not where each length is compiled for long."""
        training = self._config.training
        compiled = self._devices.use_xla or training.distribution_strategy == "tpu"
        one_shape = compiled or training.iterations_per_loop > 1
        return self._config.trim_padding and not one_shape

    def _training_config(self, examples: int) -> TrainingConfig:
        config = self._config
        steps = int(examples / config.training.train_batch_size * config.num_train_epochs)
        if steps < 1:
            raise UserError(
                f"{examples} examples in {config.num_train_epochs} epochs of batches of "
                f"{config.training.train_batch_size} make no step; lower "
                "`train_batch_size` or raise `num_train_epochs`."
            )
        warmup = int(steps * config.warmup_proportion)
        return replace(config.training, num_train_steps=steps, num_warmup_steps=warmup)

    def _settings(self, features: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """What a resumed run must have the same, beside how it is trained."""
        checkpoint = self._start.checkpoint
        return {
            "task_name": self._task.name,
            "training_data": _fingerprint(features),
            "init_checkpoint": checkpoint and str(Path(checkpoint).resolve()),
            "max_seq_length": self._config.max_seq_length,
            "do_lower_case": self._start.text.do_lower_case,
            "vocabulary_sha256": self._start.text.vocabulary.sha256,
            "model": self._start.config.to_google(),
        }

    def _check_labels(self, config: BertConfig) -> None:
        """Refuses a trained model whose classes mean something else than the task's."""
        found, wanted = _label_names(self._start.config), _label_names(config)
        unnamed = all(name.startswith("label_") for name in found)
        # In the run's own model the user may have named the classes otherwise.
        own = Path(str(self._start.checkpoint)) == self._directory.model
        renamed = own and set(found) != set(wanted)
        if found != wanted and not unnamed and not renamed:
            raise UserError(
                f"{self._start.checkpoint}: its labels are {', '.join(found)}, but those of "
                f"{self._task.name} are {', '.join(wanted)}, in this order; name a model that was "
                "trained for this task here, or add --do_train."
            )

    def _check_restored(self, report: RestoreReport) -> None:
        """Refuses to score or serve a head that was never trained."""
        new_head = [path for path in report.new if not path.startswith(("pooler", "embeddings"))]
        if new_head and not self._config.do_train:
            raise UserError(
                f"{self._start.checkpoint}: holds no trained head for {self._task.name} (its "
                f"{new_head[0]} is missing); add --do_train or name a fine-tuned model directory."
            )


def _label_names(config: BertConfig) -> list[str]:
    """The names of a configuration's labels in the order of the classes, in small letters.

    Example:
        >>> _label_names(BertConfig(vocab_size=9, extra={"id2label": {"1": "Yes", "0": "No"}}))
        ['no', 'yes']
    """
    names = label_names(config)
    by_class = sorted(names, key=lambda number: (len(number), number))
    return [names[number].lower() for number in by_class]


def _fingerprint(features: Mapping[str, np.ndarray]) -> str:
    """Tells one training set from another, for a message.

    Example:
        >>> _fingerprint({"input_ids": np.zeros([3, 2], np.int32)})
        '3 examples, sha256 83bbce59'
    """
    digest = hashlib.sha256()
    for name in sorted(features):
        digest.update(name.encode() + np.ascontiguousarray(features[name]).tobytes())
    rows = len(next(iter(features.values())))
    return f"{rows} examples, sha256 {digest.hexdigest()[:8]}"
