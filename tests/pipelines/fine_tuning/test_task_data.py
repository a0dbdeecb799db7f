"""Rows of a task: made once, and again when what they come from has changed."""

import dataclasses

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.long_texts import LongTexts
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.unknown_words import WordCount
from keras_bert_impl.training.objectives import ClassificationObjective
from pipelines.fine_tuning import task_data
from pipelines.fine_tuning.heads import ClassificationHead, MultiLabelHead, RegressionHead
from pipelines.fine_tuning.task_data import AnsweredSplit, TaskData, mean_loss
from pipelines.fine_tuning.text_rows import TextExample
from pipelines.inputs.row_outputs import RowOutputs
from pipelines.records.row_set import make_rows
from pipelines.tasks.labels.rows import LabelTask
from tests.support.model_folders import WORD_VOCABULARY, tiny_config
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


@pytest.mark.parametrize("change", ["file", "length", "casing", "stride", "code", "package"])
def test_rows_are_made_again_when_what_they_come_from_changes(data, monkeypatch, change):
    calls = made(monkeypatch)
    data.rows("dev")
    if change == "file":
        with (data.task.data_dir / "dev.tsv").open("a") as file:
            file.write("a list\tno\n")
    elif change == "code":
        monkeypatch.setattr(task_data, "ROWS_VERSION", task_data.ROWS_VERSION + 1)
    elif change == "package":
        monkeypatch.setattr("keras_bert_impl.__version__", "9.9")
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
    assert not data.folder.exists()


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
    outputs.add(np.arange(len(rows)), {"logits": logits.astype(np.float32)})
    return outputs


def test_every_example_gets_the_answer_of_its_own_rows(data, outputs, monkeypatch):
    answered = AnsweredSplit(data.task, "dev", data.rows("dev"), outputs)
    for _ in range(2):  # as often as somebody looks
        pairs = [(example.text, score) for example, score in answered]
        assert pairs == list(zip(TEXTS, [1.0, 2.0, 5.0, 6.0], strict=True))


def test_rows_of_another_length_do_not_replace_those_of_a_run(data, monkeypatch):
    rows = data.rows("dev")
    longer = dataclasses.replace(data, max_seq_length=8).rows("dev")
    calls = made(monkeypatch)
    assert data.rows("dev").identity == rows.identity != longer.identity
    assert not calls


def test_answers_are_not_joined_with_a_file_that_has_changed(data, outputs):
    answered = AnsweredSplit(data.task, "dev", data.rows("dev"), outputs)
    path = data.task.data_dir / "dev.tsv"
    path.write_text(path.read_text().replace("dog", "cat"))
    with pytest.raises(UserError, match=r"dev\.tsv: changed since its rows were made; run again"):
        next(iter(answered))


@pytest.mark.parametrize("count", [3, 5])
def test_answers_are_not_joined_with_more_or_fewer_examples(data, outputs, monkeypatch, count):
    answered = AnsweredSplit(data.task, "dev", data.rows("dev"), outputs)
    examples = [*data.task.examples("dev"), *data.task.examples("dev")][:count]
    monkeypatch.setattr(ToyTask, "examples", lambda *_: iter(examples))
    with pytest.raises(UserError, match=r"dev\.tsv: changed since its rows were made"):
        list(answered)


def test_a_file_that_changes_while_it_is_read_gives_no_rows(data, monkeypatch):
    rows = ToyTask.rows

    def changing(self, *arguments, **options):
        with (self.data_dir / "dev.tsv").open("a") as file:
            file.write("a list\tno\n")
        return rows(self, *arguments, **options)

    monkeypatch.setattr(ToyTask, "rows", changing)
    with pytest.raises(UserError, match=r"dev\.tsv: changed"):
        data.rows("dev")
    assert not list(data.folder.glob("rows*"))


def test_a_missing_answer_is_no_silent_loss(data, outputs, monkeypatch):
    monkeypatch.setattr(ToyTask, "answers", lambda *_: [0.5])
    with pytest.raises(ValueError, match="shorter"):
        list(AnsweredSplit(data.task, "dev", data.rows("dev"), outputs))


def test_the_loss_is_the_mean_over_all_rows(data, outputs):
    rows = data.rows("dev")
    labels = rows.read(np.arange(7)).values["label_ids"]
    margins = np.arange(7) * np.where(labels == 1, 1.0, -1.0)
    expected = np.log1p(np.exp(-margins)).mean()
    found = mean_loss(data.task, ClassificationObjective(), rows, outputs, ["label_ids"])
    assert found == pytest.approx(expected, rel=1e-6)
    missing = mean_loss(data.task, ClassificationObjective(), rows, outputs, ["other_labels"])
    assert missing is None


YES_NO, SPREAD = {"no": "no", "yes": "yes"}, np.random.default_rng(1)
HEADS = {
    "classes": (ClassificationHead(YES_NO), ["yes", "no", "yes"]),
    "weighted": (ClassificationHead(YES_NO, [1.0, 3.0]), ["yes", "no", "yes"]),
    "several": (MultiLabelHead(["rude", "toxic"]), ['["rude"]', "[]", '["rude", "toxic"]']),
    "number": (RegressionHead(), ["2.5", "-1", "0"]),
}


@pytest.mark.parametrize("answers", ["mean", "max"])
@pytest.mark.parametrize("kind", HEADS)
def test_the_loss_of_windows_is_that_of_the_answers(tmp_path, kind, answers):
    """As of a set whose texts have one window each, with the logits that answer."""
    task = LabelTask()
    task.head_of, labels = HEADS[kind]
    task.long_texts = LongTexts(long_text="windows", doc_stride=1, window_answers=answers)
    texts = ["value", "the dog runs a list of a value", "cat"]
    examples = [TextExample(text, text, None, one) for text, one in zip(texts, labels, strict=True)]
    rows = task.rows(examples, Tokenizer(TextSettings(WORD_VOCABULARY)), 6, training=False)
    assert np.bincount(rows.examples).tolist() == [1, 5, 1]
    width = 1 if kind == "number" else 2
    logits = SPREAD.normal(size=(len(rows), width)).astype(np.float32)
    objective = task.head(tiny_config()).objective

    def loss(name, rows, logits):
        kept = make_rows(tmp_path / name, {}, [rows])
        outputs = RowOutputs(tmp_path / f"{name} outputs", kept)
        outputs.add(np.arange(len(kept)), {"logits": logits})
        return mean_loss(task, objective, kept, outputs, ["label_ids"])

    joined = [getattr(logits[rows.examples == one], answers)(axis=0) for one in range(3)]
    short = [dataclasses.replace(one, text_a="value") for one in examples]
    alone = task.rows(short, Tokenizer(TextSettings(WORD_VOCABULARY)), 6, training=False)
    expected = loss("alone", alone, np.array(joined, np.float32))
    assert loss("windows", rows, logits) == pytest.approx(expected, rel=1e-6)


def test_the_words_of_the_rows_are_kept_with_them(data, monkeypatch):
    # Windows of four tokens, two apart: "the dog runs a | runs a list", "value",
    # "a cat sleeps the | sleeps the value . | value . ,", "cat": 20 words, and all are known.
    assert data.rows("dev").word_count == WordCount(words=20, unknown=0)
    made(monkeypatch)
    assert data.rows("dev").word_count == WordCount(words=20, unknown=0)
