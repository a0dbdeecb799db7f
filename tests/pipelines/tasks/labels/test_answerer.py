"""Classifiers asked without a model: the rows of texts, the answers of logits."""

from types import SimpleNamespace

import numpy as np
import pytest

from keras_bert_impl.checkpoints.task_settings import with_task_settings
from keras_bert_impl.tokenization.text_settings import TextSettings
from pipelines.tasks.labels.rows import label_forms
from tests.support.model_folders import WORD_VOCABULARY, tiny_config


def forms(labels, several=False, **settings):
    model = SimpleNamespace(
        config=with_task_settings(tiny_config(), settings),
        text=TextSettings(WORD_VOCABULARY),
        labels=tuple(labels),
        is_multi_label=several,
    )
    return label_forms(model)


def answer(form, *logits, texts=("dog",)):
    prepared = form.prepare([{"text": text} for text in texts])
    assert len(prepared.rows) == len(logits)
    return form.finish(prepared, [{"logits": np.array(one, np.float32)} for one in logits])


def test_a_label_has_its_probabilities():
    (found,) = answer(forms(["no", "yes"])[0], [0.0, np.log(3.0)])
    assert found == {
        "label": "yes",
        "probabilities": pytest.approx([0.25, 0.75]),
        "logits": [0.0, pytest.approx(1.0986, abs=1e-4)],
        "label_probabilities": [["yes", pytest.approx(0.75)], ["no", pytest.approx(0.25)]],
    }


def test_several_labels_hold_from_a_half_on():
    (found,) = answer(forms("abc", several=True)[0], [0.0, -1.0, 3.0])
    assert found["labels"] == ["a", "c"]
    assert found["probabilities"] == pytest.approx([0.5, 0.2689, 0.9526], abs=1e-4)


def test_one_label_is_a_number():
    form = forms(["score"])[0]
    assert (form.kind, answer(form, [2.5])) == ("number", [{"score": 2.5}])


def test_the_windows_of_a_long_text_are_one_answer():
    form = forms("ab", long_text="windows", doc_stride=10)[0]
    long = "the dog " * 10
    found = answer(form, [1, 0], [3, 0], [2, 2], texts=[long, "dog"])
    assert [one["logits"] for one in found] == [[2.0, 0.0], [2.0, 2.0]]
