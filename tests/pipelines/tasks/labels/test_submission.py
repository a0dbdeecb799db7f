import logging
import re
import zipfile

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from pipelines.fine_tuning.text_rows import TextExample
from pipelines.tasks.labels.glue import GLUE_TASKS, ROWS, SubmissionConfig, write_submission_archive
from tests.pipelines.tasks.labels.test_glue import answered


def write_answers(folder, task):
    """What a run writes for a test set of one example."""
    folder.mkdir(parents=True, exist_ok=True)
    labels = getattr(task.head_of, "labels", ("score",))
    logits = np.arange(len(labels), dtype=np.float32)[None]
    for split in task.test_splits:
        task.write(folder, split, answered(task, [TextExample("0", "the", "dog")], logits))


def archive(output, *folders):
    config = SubmissionConfig(run_dir=tuple(map(str, folders)), output_file=output)
    return write_submission_archive(config)


def test_what_the_tasks_write_is_what_the_server_asks_for(tmp_path):
    for task in GLUE_TASKS:
        write_answers(tmp_path / "runs" / task.name, task)
    found = archive(tmp_path / "submission.zip", tmp_path / "runs")
    assert found.keys() == ROWS.keys()
    with zipfile.ZipFile(tmp_path / "submission.zip") as file:
        assert sorted(file.namelist()) == sorted(f"{name}.tsv" for name in ROWS)
        assert len(ROWS) == 11
        assert file.read("RTE.tsv") == (tmp_path / "runs" / "RTE" / "RTE.tsv").read_bytes()
        assert file.read("RTE.tsv").startswith(b"index\tprediction\n0\t")


def test_missing_files_are_named(tmp_path, caplog):
    write_answers(tmp_path / "cola", GLUE_TASKS[0])
    with caplog.at_level(logging.WARNING):
        found = archive(tmp_path / "submission.zip", tmp_path / "cola")
    assert list(found) == ["CoLA"]
    assert "CoLA.tsv: has 1 answers, not 1063, GLUE's." in caplog.text


@pytest.mark.parametrize("line", ["0\tacceptable", "x\t1", "1\t0"])
def test_a_file_that_the_server_would_refuse_is_named(tmp_path, line):
    (tmp_path / "CoLA.tsv").write_text(f"index\tprediction\n1\t1\n{line}\n")
    words = f"CoLA.tsv: line 3 is {line!r}, no answer here; give the number of each example once"
    with pytest.raises(UserError, match=re.escape(words)):
        archive(tmp_path / "a.zip", tmp_path)
