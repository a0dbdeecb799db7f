"""From options and files to a checked run: its task, and the model that it starts from or scores.

All files are read once before anything else, and nothing here loads TensorFlow, so that a mistake
in a file or an option shows at once, not after hours of training.
"""

import hashlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

from keras_bert_impl.checkpoints.formats.peft_adapter import refuse_adapter
from keras_bert_impl.checkpoints.hub import may_be_hub_name
from keras_bert_impl.checkpoints.model_source import ModelSource, find_model, label_names, locate
from keras_bert_impl.checkpoints.run_folder import newest_checkpoint
from keras_bert_impl.checkpoints.sentence_modules import read_sentence_settings
from keras_bert_impl.config import BertConfig
from keras_bert_impl.engines.kept_graph import files_of_numbers
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_input
from keras_bert_impl.json_files import json_text
from keras_bert_impl.options import options_of
from keras_bert_impl.tokenization.text_settings import NFC, Casing, TextSettings
from keras_bert_impl.tokenization.unknown_words import UnknownWords
from keras_bert_impl.training.learning_curve import Guess
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.fine_tuning.options import FineTuningConfig
from pipelines.fine_tuning.task import Task, TaskDefaults
from pipelines.tables.files import open_table

_LOGGER = logging.getLogger(__name__)

_HIGH_RATE = 5e-4  # ten times the highest that BERT's paper tried

AnyConfig = TypeVar("AnyConfig", bound=FineTuningConfig)


class CheckedRun(NamedTuple):
    """A run whose options (with those that the model keeps), files and model were looked at."""

    config: Any
    task: Task[Any, Any]
    start: ModelSource


def check_run(config: AnyConfig, task_of: Callable[[AnyConfig], Task[Any, Any]]) -> CheckedRun:
    """Looks at the options, the files and the model of a run, and leaves no folder behind."""
    if not (config.do_train or config.do_eval or config.do_predict):
        raise UserError("nothing to do; give `do_train=True`, `do_eval=True` or `do_predict=True`.")
    directory = RunDirectory(config.output_dir)
    if not config.do_train:
        _check_has_model(config, directory)
        config = with_kept_options(config, starting_point(config, directory))
        config.check_together()
    elif config.init_checkpoint and not may_be_hub_name(config.init_checkpoint):
        locate(config.init_checkpoint)  # it is opened, or fetched, when the files were read
    task = task_of(config)
    start = starting_point(config, directory)
    if task.max_seq_length and not _gives_length(config):
        length = min(task.max_seq_length, start.config.max_position_embeddings)
        config = replace(config, max_seq_length=length)
    start.config.check_length(config.max_seq_length, at_least=5)
    if config.do_train and config.adapters.lora_rank:
        _check_adapters(config, start)
    # Some examples of each split are read here, the others when their rows are made.
    check_vocabulary(task, wanted_splits(config, task), start.text, config.unknown)
    _tell_of_high_rate(config, start)
    return CheckedRun(config, task, start)


def _check_adapters(config: FineTuningConfig, start: ModelSource) -> None:
    rank = config.adapters.lora_rank
    size = min(start.config.hidden_size, start.config.intermediate_size)
    if start.checkpoint is None:
        raise UserError(
            f"`lora_rank={rank}` trains no encoder; name a trained one with `init_checkpoint`."
        )
    refuse_adapter(start.tensors(), f"`lora_rank={rank}`")
    if rank > size:
        raise UserError(
            f"`lora_rank={rank}`: the matrices of {start.checkpoint} have {size} rows or columns; "
            f"take at most {size}."
        )


def _gives_length(config: FineTuningConfig) -> bool:
    if config.given is not None:
        return "max_seq_length" in config.given
    return config.max_seq_length != FineTuningConfig.max_seq_length


def _tell_of_high_rate(config: FineTuningConfig, start: ModelSource) -> None:
    """Warns of a learning rate that makes a trained encoder forget; random weights bear it."""
    training = config.training
    bears = not config.do_train or start.checkpoint is None or config.adapters.lora_rank
    if not bears and training.optimizer == "adamw" and training.learning_rate >= _HIGH_RATE:
        _LOGGER.warning(
            "`learning_rate=%g` is ten times as high as suits a trained encoder, or higher; it may "
            "forget what it learned; 2e-5 to 5e-5 are usual.",
            training.learning_rate,
        )


def _check_has_model(config: FineTuningConfig, directory: RunDirectory) -> None:
    """Refuses to evaluate a run that is not finished, where no other model is named."""
    named = config.init_checkpoint or directory.model.is_dir()
    if not named and newest_checkpoint(directory.path):
        raise UserError(
            f"{directory.path}: its training is not finished; give the command that trains again, "
            f"or name a checkpoint to evaluate: `init_checkpoint={directory.checkpoints}`."
        )


def check_vocabulary(
    task: Task[Any, Any], splits: Iterable[str], text: TextSettings, unknown: UnknownWords
) -> None:
    """Counts the words of a sample of each split, before anything is made of them."""
    for split in splits:
        texts = (one for example in task.examples(split) for one in task.texts(example))
        name = ", ".join(map(str, task.files(split))) or f"the split {split}"
        unknown.check(texts, text, name)


def wanted_splits(config: FineTuningConfig, task: Task[Any, Any]) -> list[str]:
    """The splits that a run reads."""
    wanted = [task.train_split] if config.do_train else []
    wanted += task.evaluation_splits if config.do_eval else ()
    wanted += task.test_splits if config.do_predict else ()
    return list(dict.fromkeys(wanted))


def starting_point(config: FineTuningConfig, run: RunDirectory) -> ModelSource:
    """The given checkpoint; without training, the run's own model where there is one."""
    checkpoint = config.init_checkpoint
    if not config.do_train and run.model.is_dir():
        checkpoint = str(run.model)
    # What is trained on composed text keeps it; a model that is evaluated has its own form.
    composes = config.do_train and config.file_encoding.composes
    return find_model(
        checkpoint,
        **config.description(),
        told=Casing(unicode_form=NFC if composes else None),
        default_lower_case=True,
    )


def _content(path: Path) -> str:
    """A digest in a fifth of SHA-256's time, computed once of a file while it stays as it is."""
    status = path.stat()
    return _digest(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=16)
def _digest(path: Path, *_: int) -> str:
    with open_input(path) as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()  # type: ignore[arg-type]


def model_content(source: ModelSource, of_file: Callable[[Path], str] = _content) -> str:
    """Tells a model from one that was trained anew in its place, by numbers and settings."""
    parts = [json_text(source.config.to_dict(), sort_keys=True)]
    parts.append(f"{read_sentence_settings(source.folder)}")
    parts += [of_file(path) for path in files_of_numbers(source)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def with_kept_options(config: AnyConfig, model: ModelSource) -> AnyConfig:
    """An evaluation with the options that its model keeps; a given one stands, with a warning."""
    if config.do_train:
        return config
    kept, values = config.kept(model.config), dict[tuple[str, ...], Any]()
    if model.found_text and model.found_text.composes:
        kept["unicode_form"] = model.found_text.unicode_form
    told = []
    for one in (one for one in options_of(type(config)) if one.name in kept):
        present, trained = reduce(getattr, one.path, config), kept[one.name]
        given = present != one.default if config.given is None else one.name in config.given
        if not given:
            if trained != one.default:
                told.append(f"{one.name} = {_in_words(trained)}")
            if one.name not in config.LOOKED_UP:
                values[one.path] = trained
        elif present != trained and one.name in config.PART_OF_THE_MODEL:
            raise UserError(
                f"`{one.name}={_in_words(present)}`: {model.checkpoint} was trained with "
                f"{_in_words(trained)}; leave it out, or add `do_train=True`."
            )
        elif present != trained and one.name not in config.OF_FILES:
            _LOGGER.warning(
                "`%s=%s` replaces %s, with which %s was trained and is served; served "
                "answers may differ from those of this run.",
                *(one.name, _in_words(present), _in_words(trained), model.checkpoint),
            )
    if told:
        _LOGGER.info("as %s was trained: %s", model.checkpoint, ", ".join(told))
    return _with_values(config, values)


def _in_words(value: Any) -> str:
    items = value if isinstance(value, tuple) else () if value is None else (value,)
    return ",".join(map(str, items)) or "nothing"


def _with_values(config: Any, values: Mapping[tuple[str, ...], Any]) -> Any:
    """The config with other values of its own options and of nested ones."""
    own = {path[0]: value for path, value in values.items() if len(path) == 1}
    for name in {path[0] for path in values if len(path) > 1}:
        inner = {path[1:]: value for path, value in values.items() if path[0] == name}
        own[name] = _with_values(getattr(config, name), inner)
    return replace(config, **own)


def check_trained(
    directory: RunDirectory, source: ModelSource, config: BertConfig, task: str
) -> None:
    """Refuses to score without a model, or one whose classes mean something else."""
    if source.checkpoint is None:
        there = newest_checkpoint(directory.path)
        newest = f" ({directory.checkpoints} has those of this run)" if there else ""
        raise UserError(
            f"{directory.path}: holds no trained model to evaluate (no {directory.model.name}/); "
            f"add `do_train=True`, or name a fine-tuned model with `init_checkpoint`{newest}."
        )
    found = [label.lower() for label in source.labels]
    wanted = [label.lower() for label in label_names(config).values()]
    # Without labels the head is missing; a task without (choices) takes a head of one score.
    as_many = not found or not wanted or len(found) == len(wanted)
    unnamed = as_many and all(name.startswith("label_") for name in found)
    # In the run's own model the user may have named the classes otherwise.
    own = Path(source.checkpoint) == directory.model
    renamed = own and set(found) != set(wanted)
    if found != wanted and not unnamed and not renamed:
        raise UserError(
            f"{source.checkpoint}: its labels are {', '.join(found)}, but those of {task} are "
            f"{', '.join(wanted)}, in this order; name a model that was trained for this task "
            "here, or add `do_train=True`."
        )


def tell_of_nothing_learned(
    task: Task[Any, Any], split: str, scores: Mapping[str, float], guesses: Mapping[str, Guess]
) -> None:
    """Warns where the figure that decides is not above what guessing reaches."""
    name = next((one for one in (*task.compared_figures, *scores) if one in scores), "")
    guessed = guesses[name].value if name in guesses else 0.0
    if not scores[name] > guessed:  # a correlation may be NaN
        _LOGGER.warning(
            "%s: %s = %.4f, where one answer to every example reaches %.4f; the model has not "
            "learned to separate them. Train longer, with a smaller `learning_rate`, or with "
            "another `seed`.",
            *(split, name, scores[name], guessed),
        )


class TaskBuilder(ABC):
    """The steps by which a task is opened: the files, the labels in them, the check of each file.

    The `trained` model is scored or answers and knows its labels; None where one is trained.
    `run` has all options, where there is a run.
    """

    CONFIG: ClassVar[type[FineTuningConfig]]
    TRAINING_IS_MISSING: ClassVar[str]
    FILES_ARE_MISSING: ClassVar[str] = (
        "there is no file to evaluate or to predict; name one with `dev_file` or `test_file`."
    )
    NOTHING_TO_SCORE: ClassVar[str] = (
        "`do_eval=True`: there is no file with labels to evaluate; name one with `dev_file`, or "
        "leave `do_eval` out."
    )
    NOTHING_TO_ANSWER: ClassVar[str] = (
        "`do_predict=True`: there is no file to predict; name one with `test_file`."
    )

    def __init__(self, config: Any, trained: ModelSource | None, run: Any = None) -> None:
        self._config, self._trained, self._run = config, trained, run
        self._known = {} if trained is None else self.CONFIG.known(trained.config)

    @classmethod
    def for_run(cls, run: FineTuningConfig, config: Any) -> Any:
        """The task of a run; `config` names its files."""
        trained = None
        if not run.do_train:
            trained = starting_point(run, RunDirectory(run.output_dir))
        task = cls(config, trained, run).task()
        if run.do_eval and not task.evaluation_splits:
            raise UserError(cls.NOTHING_TO_SCORE)
        if run.do_predict and not task.test_splits:
            raise UserError(cls.NOTHING_TO_ANSWER)
        return task

    def task(self) -> Any:
        """Opens all files, finds what their labels mean, and holds every file against it."""
        files = self._files()
        found = self._find(files)
        checked = {split: self._check(split, file, found) for split, file in files.items()}
        return self._make(checked, found)

    def _files(self) -> dict[str, Any]:
        splits = ("train", "dev", "test") if self._needs_training else ("dev", "test")
        named = {split: name for split in splits if (name := self._config.file(split))}
        if self._trained is None and "train" not in named:
            raise UserError(self.TRAINING_IS_MISSING)
        if not named:
            raise UserError(self.FILES_ARE_MISSING)
        return {split: self._open(split, name) for split, name in named.items()}

    @property
    def _needs_training(self) -> bool:
        return self._trained is None

    def _reads_labels(self, split: str) -> bool:
        return split != "test" or self._run is None or self._run.reads_labels

    def _open(self, split: str, name: Any) -> Any:
        """A file with its form known, by default a table; that of training comes first."""
        del split
        return open_table(name, header=self._config.has_header, encoding=self._config.text_encoding)

    @abstractmethod
    def _find(self, files: Mapping[str, Any]) -> Any:
        """The labels and their meaning: of the trained model, or of a pass over the first file."""

    @abstractmethod
    def _check(self, split: str, file: Any, found: Any) -> Any:
        """A file that is read to its end and has such labels, or none where it need not."""

    @abstractmethod
    def _make(self, sources: Mapping[str, Any], found: Any) -> Any:
        """The task of the checked files."""


class FilesOfSplits(TaskDefaults):
    """Base of the tasks that have a file for each split; see `Task`."""

    NEEDED: ClassVar[str]
    sources: Mapping[str, Any]  # each has its `path`, and says whether it is `labelled`

    @property
    def evaluation_splits(self) -> Sequence[str]:
        return [split for split in self.test_splits if self.sources[split].labelled]

    @property
    def test_splits(self) -> Sequence[str]:
        return [split for split in ("dev", "test") if split in self.sources]

    def files(self, split: str) -> Sequence[Path]:
        return [self.source(split).path]

    def source(self, split: str) -> Any:
        if split not in self.sources:
            raise UserError(f"`{split}_file` is missing; name {self.NEEDED}.")
        return self.sources[split]
