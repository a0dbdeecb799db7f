"""From options and files to a checked task: the plan of families that have a file for each split.

All files are read once before anything else, so that a mistake in the last one shows before hours
of training. A family says what an opened file is, what a first pass over the training file finds,
and what its labels mean; the order of the steps, and what is refused at each, stand here.
"""

import itertools
import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from keras_bert_impl.checkpoints.model_source import ModelSource
from keras_bert_impl.errors import UserError
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.fine_tuning.options import FineTuningConfig
from pipelines.fine_tuning.start import starting_point
from pipelines.fine_tuning.task import TaskDefaults

_LOGGER = logging.getLogger(__name__)


class TaskBuilder(ABC):
    """The steps by which a task is opened: the files, the labels in them, the check of each file.

    Args:
        config: the files, and what is in them.
        trained: the model that is scored or answers, which knows its labels; None where one is
            trained from the training file.

    Attributes:
        CONFIG: the options of the family's runs.
        TRAINING_IS_MISSING: what is said where there is no training file to train on.
        FILES_ARE_MISSING: where there is no file at all.
        NOTHING_TO_SCORE: where no file has labels.
        NOTHING_TO_ANSWER: where there is no file but that of training.
    """

    CONFIG: ClassVar[type[FineTuningConfig]]
    TRAINING_IS_MISSING: ClassVar[str]
    FILES_ARE_MISSING: ClassVar[str]
    NOTHING_TO_SCORE: ClassVar[str]
    NOTHING_TO_ANSWER: ClassVar[str] = (
        "`do_predict=True`: there is no file to predict; name one with `test_file`."
    )

    def __init__(self, config: Any, trained: ModelSource | None) -> None:
        self._config, self._trained = config, trained
        self._known = {} if trained is None else self.CONFIG.known(trained.config)

    @classmethod
    def for_run(cls, run: FineTuningConfig, config: Any) -> Any:
        """The task of a run; `config` names its files.

        Raises:
            UserError: a file is not what it should be, there is no model where nothing is trained,
                or nothing to score or to answer.
        """
        trained = None
        if not run.do_train:
            trained = starting_point(run, RunDirectory(run.output_dir))
        task = cls(config, trained).task()
        if run.do_eval and not task.evaluation_splits:
            raise UserError(cls.NOTHING_TO_SCORE)
        if run.do_predict and not task.test_splits:
            raise UserError(cls.NOTHING_TO_ANSWER)
        return task

    def task(self) -> Any:
        """Opens all files, finds what their labels mean, and holds every file against it.

        Raises:
            UserError: a file, a column or a label is not what it should be.
        """
        files = self._files()
        self._tell_of_same_files()
        found = self._find(files)
        checked = {split: self._check(split, file, found) for split, file in files.items()}
        return self._make(checked, found)

    def _files(self) -> dict[str, Any]:
        splits = ("train", "dev", "test") if self._needs_training else ("dev", "test")
        named = {split: self._config.file(split) for split in splits}
        named = {split: name for split, name in named.items() if name}
        if self._trained is None and "train" not in named:
            raise UserError(self.TRAINING_IS_MISSING)
        if not named:
            raise UserError(self.FILES_ARE_MISSING)
        return {split: self._open(split, name) for split, name in named.items()}

    def _tell_of_same_files(self) -> None:
        """Warns where figures are measured on what was trained on, or chosen by."""
        for one, other in itertools.combinations(("train", "dev", "test"), 2):
            first, second = self._config.file(one), self._config.file(other)
            if (one != "train" or self._needs_training) and are_same_file(first, second):
                _LOGGER.warning(
                    "`%s_file` and `%s_file` are the same file, %s: its figures say little of new "
                    "texts.",
                    *(one, other, first),
                )

    @property
    def _needs_training(self) -> bool:
        return self._trained is None

    @abstractmethod
    def _open(self, split: str, name: Any) -> Any:
        """A file with its form known; that of training comes first."""

    @abstractmethod
    def _find(self, files: Mapping[str, Any]) -> Any:
        """Gives the labels and their meaning.

        The trained model says so, or a first pass over the training file.
        """

    @abstractmethod
    def _check(self, split: str, file: Any, found: Any) -> Any:
        """A file that is read to its end and has such labels, or none where it need not."""

    @abstractmethod
    def _make(self, sources: Mapping[str, Any], found: Any) -> Any:
        """The task of the checked files."""


def are_same_file(first: Any, second: Any) -> bool:
    """Whether both are one file, by whatever path; what is no file is another one.

    Example:
        >>> are_same_file(__file__, Path(__file__)), are_same_file("tfds:x", "tfds:x")
        (True, False)
    """
    paths = [Path(one) for one in (first, second) if one is not None]
    return len(paths) == 2 and all(path.is_file() for path in paths) and paths[0].samefile(paths[1])


class FilesOfSplits(TaskDefaults):
    """Base of the tasks that have a file for each split; see `Task`.

    Attributes:
        sources: the files of the splits "train", "dev" and "test" that there are; each has
            its `path`, and says whether it is `labelled`.
        NEEDED: what such a file is, for messages.
    """

    NEEDED: ClassVar[str]
    sources: Mapping[str, Any]

    @property
    def evaluation_splits(self) -> Sequence[str]:
        """The dev and the test file, where they have labels."""
        return [split for split in self.test_splits if self.sources[split].labelled]

    @property
    def test_splits(self) -> Sequence[str]:
        """The dev and the test file."""
        return [split for split in ("dev", "test") if split in self.sources]

    def files(self, split: str) -> Sequence[Path]:
        """The split's file."""
        return [self.source(split).path]

    def source(self, split: str) -> Any:
        """The split's file with what is known of it."""
        if split not in self.sources:
            raise UserError(f"`{split}_file` is missing; name {self.NEEDED}.")
        return self.sources[split]
