"""From a run's configuration to its task; the tool's tests hold whole runs."""

import pytest

from keras_bert_impl.errors import UserError
from pipelines.tasks.tagging.options import RunNerConfig, TaggingConfig
from pipelines.tasks.tagging.task import task_of
from tests.support.tagged_files import write_tagged


def config(folder, *, files=None, **options):
    files = files or TaggingConfig(data_dir=folder, context="sentence", doc_stride=5)
    return RunNerConfig(output_dir=folder / "run", files=files, do_train=True, **options)


def test_the_task_has_the_options(tmp_path):
    write_tagged(tmp_path / "train.txt", 8)
    task = task_of(config(tmp_path))
    assert (task.whole_documents, task.doc_stride) == (False, 5)
    assert len(list(task.examples("train"))) == 8


def test_there_must_be_a_file_for_what_reads_it(tmp_path):
    path = write_tagged(tmp_path / "train.txt", 8)
    files = TaggingConfig(train_file=path)
    with pytest.raises(UserError, match="`do_eval=True`: there is no file"):
        task_of(config(tmp_path, files=files, do_eval=True))
