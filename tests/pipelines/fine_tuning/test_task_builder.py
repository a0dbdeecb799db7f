"""The plan by which files become a checked task, and what the families make of it."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from keras_bert_impl.errors import UserError
from pipelines.fine_tuning.start import FilesOfSplits, TaskBuilder
from pipelines.tasks.labels.options import RunClassifierConfig


class ToyFile(SimpleNamespace):
    """A file of a split."""


class ToyTask(FilesOfSplits):
    NEEDED = "a toy"

    def __init__(self, sources):
        self.sources = sources

    def rows(self, examples, tokenizer, max_seq_length):
        raise AssertionError("no row is made before the files are checked")


class ToyBuilder(TaskBuilder):
    """Writes down what it is asked for."""

    CONFIG = RunClassifierConfig
    TRAINING_IS_MISSING = "no training file"
    FILES_ARE_MISSING = "no file"
    NOTHING_TO_SCORE = "nothing to score"

    def __init__(self, config, trained=None, run=None):
        super().__init__(config, trained, run)
        self.steps = []

    def _open(self, split, name):
        self.steps.append(f"open {split}")
        return ToyFile(path=Path(name), labelled=split != "test")

    def _find(self, files):
        self.steps.append(f"find in {next(iter(files))}")
        return "labels"

    def _check(self, split, file, found):
        self.steps.append(f"check {split} against {found}")
        return file

    def _make(self, sources, found):
        self.steps.append(f"make of {found}")
        return ToyTask(sources)


def named(**files):
    return SimpleNamespace(file=files.get)


def test_all_files_are_opened_then_surveyed_then_checked():
    builder = ToyBuilder(named(test="c", dev="b", train="a"))
    task = builder.task()
    assert builder.steps == [
        *("open train", "open dev", "open test", "find in train"),
        *(f"check {split} against labels" for split in ("train", "dev", "test")),
        "make of labels",
    ]
    assert (task.evaluation_splits, task.test_splits) == (["dev"], ["dev", "test"])
    assert task.files("test") == [Path("c")]


def test_a_split_without_a_file_is_named():
    with pytest.raises(UserError, match="`dev_file` is missing; name a toy"):
        ToyTask({}).files("dev")


def test_what_is_to_be_done_needs_files(tmp_path):
    run = SimpleNamespace(do_train=True, do_eval=True, do_predict=False, output_dir=tmp_path)
    with pytest.raises(UserError, match="nothing to score"):
        ToyBuilder.for_run(run, named(train="a", test="c"))
    run.do_eval, run.do_predict = False, True
    with pytest.raises(UserError, match="`do_predict=True`: there is no file to predict"):
        ToyBuilder.for_run(run, named(train="a"))
