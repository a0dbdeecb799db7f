"""Splits of a task: their rows, and the answers to their examples."""

import dataclasses

import numpy as np
import pytest

from keras_bert_impl.tokenization.long_texts import LongTexts
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.training.objectives import ClassificationObjective, SpanObjective
from pipelines.fine_tuning import row_set as splits
from pipelines.fine_tuning.heads import ClassificationHead, MultiLabelHead, RegressionHead
from pipelines.fine_tuning.row_set import AnsweredSplit, RowOutputs, RowSet, Split, mean_loss
from pipelines.fine_tuning.text_rows import TextExample
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


def made(task, name="dev"):
    return Split.make(task, name, Tokenizer(TextSettings(WORD_VOCABULARY)), 6)


@pytest.mark.parametrize("at_once", [3, 100])
def test_rows_do_not_depend_on_how_many_examples_are_read_at_once(task, monkeypatch, at_once):
    monkeypatch.setattr(splits, "_EXAMPLES_AT_ONCE", at_once)
    rows = made(task).rows
    assert rows.examples.tolist() == [0, 0, 1, 2, 2, 2, 3]
    assert rows.read(np.arange(7)).values["window_start"].tolist() == [0, 2, 0, 0, 2, 4, 0]


@pytest.fixture
def split(task):
    return made(task)


@pytest.fixture
def outputs(split):
    """Row n has the logits 0 and n."""
    outputs, size = RowOutputs(split.rows), len(split.rows)
    logits = np.stack([np.zeros(size), np.arange(size)], axis=1)
    outputs.add(np.arange(size), {"logits": logits.astype(np.float32)})
    return outputs


def test_every_example_gets_the_answer_of_its_own_rows(task, split, outputs):
    answered = AnsweredSplit(task, split, outputs)
    for _ in range(2):  # as often as somebody looks
        pairs = [(example.text, score) for example, score in answered]
        assert pairs == list(zip(TEXTS, [1.0, 2.0, 5.0, 6.0], strict=True))


def test_the_loss_is_the_mean_over_all_rows(task, split, outputs):
    rows = split.rows
    labels = rows.read(np.arange(7)).values["label_ids"]
    margins = np.arange(7) * np.where(labels == 1, 1.0, -1.0)
    expected = np.log1p(np.exp(-margins)).mean()
    found = mean_loss(task, ClassificationObjective(), rows, outputs, ["label_ids"])
    assert found == pytest.approx(expected, rel=1e-6)
    missing = mean_loss(task, ClassificationObjective(), rows, outputs, ["other_labels"])
    assert missing is None


def test_padding_that_competed_in_training_is_no_part_of_the_loss_of_a_split(task, split):
    rows = split.rows
    (_, block), *_ = rows.blocks()
    zeros = np.zeros(len(block), np.int32)
    labels = {"start_positions": zeros, "end_positions": zeros}
    spans = RowSet([dataclasses.replace(block, values={**block.values, **labels})])
    outputs = RowOutputs(spans, token_outputs=("start_logits", "end_logits"))
    logits = np.full([len(spans), spans.lengths.max()], -9.0, np.float32)  # all tokens are equal
    outputs.add(np.arange(len(spans)), {"start_logits": logits, "end_logits": logits})
    found = mean_loss(task, SpanObjective(padding_competes=True), spans, outputs, [*labels])
    assert found == pytest.approx(np.log(spans.lengths).mean(), rel=1e-6)


YES_NO, SPREAD = {"no": "no", "yes": "yes"}, np.random.default_rng(1)
HEADS = {
    "classes": (ClassificationHead(YES_NO), ["yes", "no", "yes"]),
    "weighted": (ClassificationHead(YES_NO, [1.0, 3.0]), ["yes", "no", "yes"]),
    "several": (MultiLabelHead(["rude", "toxic"]), ['["rude"]', "[]", '["rude", "toxic"]']),
    "number": (RegressionHead(), ["2.5", "-1", "0"]),
}


@pytest.mark.parametrize("answers", ["mean", "max"])
@pytest.mark.parametrize("kind", HEADS)
def test_the_loss_of_windows_is_that_of_the_answers(kind, answers):
    """As of a set whose texts have one window each, with the logits that answer."""
    task = LabelTask()
    task.head_of, labels = HEADS[kind]
    task.long_texts = LongTexts(long_text="windows", doc_stride=1, window_answers=answers)
    texts = ["value", "the dog runs a list of a value", "cat"]
    examples = [TextExample(text, text, None, one) for text, one in zip(texts, labels, strict=True)]
    rows = task.rows(examples, Tokenizer(TextSettings(WORD_VOCABULARY)), 6)
    assert np.bincount(rows.examples).tolist() == [1, 5, 1]
    width = 1 if kind == "number" else 2
    logits = SPREAD.normal(size=(len(rows), width)).astype(np.float32)
    objective = task.head(tiny_config()).objective

    def loss(rows, logits):
        kept = RowSet([rows])
        outputs = RowOutputs(kept)
        outputs.add(np.arange(len(kept)), {"logits": logits})
        return mean_loss(task, objective, kept, outputs, ["label_ids"])

    joined = [getattr(logits[rows.examples == one], answers)(axis=0) for one in range(3)]
    short = [dataclasses.replace(one, text_a="value") for one in examples]
    alone = task.rows(short, Tokenizer(TextSettings(WORD_VOCABULARY)), 6)
    expected = loss(alone, np.array(joined, np.float32))
    assert loss(rows, logits) == pytest.approx(expected, rel=1e-6)
