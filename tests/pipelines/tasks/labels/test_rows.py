"""The part of a task that its labels decide, for each kind of label."""

import numpy as np
import pytest

from keras_bert_impl.tokenization.long_texts import LongTexts
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from pipelines.fine_tuning.heads import ClassificationHead, MultiLabelHead, RegressionHead
from pipelines.fine_tuning.text_rows import TextExample
from pipelines.tasks.labels.rows import LabelTask
from tests.support.model_folders import WORD_VOCABULARY

TOKENIZER = Tokenizer(TextSettings(WORD_VOCABULARY))
LONG_TEXT = " ".join(["value"] * 8)


def task_with(head, mode="truncate"):
    task = LabelTask()
    task.head_of, task.long_texts = head, LongTexts(long_text=mode, doc_stride=2)
    return task


def rows_of(task, *examples):
    return task.rows(examples, TOKENIZER, 8)


@pytest.mark.parametrize(
    ("head", "label", "expected"),
    [
        (ClassificationHead({"no": "no", "yes": "yes"}), "yes", [1]),
        (MultiLabelHead(["rude", "toxic"]), '["toxic"]', [[0, 1]]),
        (RegressionHead(), "2.5", [2.5]),
    ],
)
def test_a_row_has_the_label_as_its_head_reads_it(head, label, expected):
    rows = rows_of(task_with(head), TextExample("0", "a value", None, label))
    assert rows.values["label_ids"].tolist() == expected


def test_rows_without_labels_have_no_label_feature():
    rows = rows_of(task_with(RegressionHead()), TextExample("0", "a value"))
    assert "label_ids" not in rows.values


def test_every_window_has_its_texts_label_and_windows_give_one_answer():
    task = task_with(ClassificationHead({"no": "no", "yes": "yes"}), "windows")
    examples = [TextExample("0", LONG_TEXT, None, "yes"), TextExample("1", "value", None, "no")]
    rows = rows_of(task, *examples)
    assert rows.values["label_ids"].tolist() == (rows.examples == 0).astype(int).tolist()
    assert len(rows.examples) > 2
    logits = np.where(rows.examples[:, None] == 0, [[0.0, 1.0]], [[1.0, 0.0]]).astype(np.float32)
    answers = task.answers(examples, rows, {"logits": logits})
    assert [answer.label for answer in answers] == ["yes", "no"]
    assert [answer.prediction for answer in answers] == [1, 0]
    np.testing.assert_allclose(answers[0].values, [0.268941, 0.731059], rtol=1e-5)
