"""Rows of a task: made once, and again when what they come from has changed."""

import dataclasses
import hashlib

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.training.objectives import ClassificationObjective
from pipelines.inputs.row_outputs import RowOutputs
from pipelines.tasks import task_data
from pipelines.tasks.task_data import AnsweredSplit, TaskData, file_sha256, mean_loss
from tests.support.model_folders import WORD_VOCABULARY
from tests.support.toy_task import ToyTask

TEXTS = ["the dog runs a list", "value", "a cat sleeps the value . ,", "cat"]


@pytest.fixture
def task(tmp_path):
    lines = [f"{text}\t{'yes' if 'value' in text else 'no'}\n" for text in TEXTS]
    for split in ("train", "dev"):
        (tmp_path / f"{split}.tsv").write_text("text\tlabel\n" + "".join(lines))
    return ToyTask(tmp_path, stride=2)


@pytest.fixture
def data(task, tmp_path):
    return TaskData(task, Tokenizer(TextSettings(WORD_VOCABULARY)), 6, tmp_path / "work")


def made(monkeypatch):
    """Counts how often the toy makes rows."""
    calls = []
    rows = ToyTask.rows

    def counted(self, *arguments, **options):
        calls.append(options)
        return rows(self, *arguments, **options)

    monkeypatch.setattr(ToyTask, "rows", counted)
    return calls


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_rows_do_not_depend_on_how_many_examples_are_read_at_once(data, monkeypatch, at_once):
    monkeypatch.setattr(task_data, "_EXAMPLES_AT_ONCE", at_once)
    rows = data.rows("dev")
    assert rows.examples.tolist() == [0, 0, 1, 2, 2, 2, 3]
    assert rows.read(np.arange(7)).values["window_start"].tolist() == [0, 2, 0, 0, 2, 4, 0]


def test_rows_are_made_once_for_each_split(data, monkeypatch):
    calls = made(monkeypatch)
    for split in ("train", "dev", "train", "dev"):
        data.rows(split)
    assert calls == [{"training": True}, {"training": False}]


@pytest.mark.parametrize("change", ["file", "length", "casing", "stride"])
def test_rows_are_made_again_when_what_they_come_from_changes(data, monkeypatch, change):
    calls = made(monkeypatch)
    data.rows("dev")
    if change == "file":
        with (data.task.data_dir / "dev.tsv").open("a") as file:
            file.write("a list\tno\n")
    elif change == "length":
        data = dataclasses.replace(data, max_seq_length=8)
    elif change == "casing":
        cased = Tokenizer(TextSettings(WORD_VOCABULARY, do_lower_case=False))
        data = dataclasses.replace(data, tokenizer=cased)
    else:
        data = dataclasses.replace(data, task=ToyTask(data.task.data_dir, stride=3))
    data.rows("dev")
    assert len(calls) == 2


def test_a_missing_file_is_named(data):
    with pytest.raises(UserError, match=r"test\.tsv: no such file"):
        data.rows("test")
    assert not (data.folder / "rows-test").exists()


def test_an_example_without_a_row_is_a_mistake_of_the_task(data, monkeypatch):
    rows = ToyTask.rows
    monkeypatch.setattr(
        ToyTask, "rows", lambda *arguments, **options: rows(*arguments, **options).of(0, 3)
    )
    with pytest.raises(ValueError, match="one row or more for every example"):
        data.rows("dev")


@pytest.fixture
def outputs(data, tmp_path):
    """Row n has the logits 0 and n."""
    rows = data.rows("dev")
    outputs = RowOutputs(tmp_path / "outputs", rows)
    logits = np.stack([np.zeros(len(rows)), np.arange(len(rows))], axis=1)
    outputs.put(np.arange(len(rows)), {"logits": logits.astype(np.float32)})
    return outputs


def test_every_example_gets_the_answer_of_its_own_rows(data, outputs, monkeypatch):
    answered = AnsweredSplit(data.task, "dev", data.rows("dev"), outputs)
    for _ in range(2):  # as often as somebody looks
        pairs = [(example.text, score) for example, score in answered]
        assert pairs == list(zip(TEXTS, [1.0, 2.0, 5.0, 6.0], strict=True))


def test_a_missing_answer_is_no_silent_loss(data, outputs, monkeypatch):
    monkeypatch.setattr(ToyTask, "answers", lambda *_: [0.5])
    with pytest.raises(ValueError, match="shorter"):
        list(AnsweredSplit(data.task, "dev", data.rows("dev"), outputs))


def test_the_loss_is_the_mean_over_all_rows(data, outputs):
    rows = data.rows("dev")
    labels = rows.read(np.arange(7)).values["label_ids"]
    margins = np.arange(7) * np.where(labels == 1, 1.0, -1.0)
    expected = np.log1p(np.exp(-margins)).mean()
    found = mean_loss(ClassificationObjective(), rows, outputs, ["label_ids"])
    assert found == pytest.approx(expected, rel=1e-6)
    assert mean_loss(ClassificationObjective(), rows, outputs, ["other_labels"]) is None


def test_the_hash_is_the_files(tmp_path):
    (tmp_path / "x").write_bytes(b"abc" * 1000)
    assert file_sha256(tmp_path / "x") == hashlib.sha256(b"abc" * 1000).hexdigest()
