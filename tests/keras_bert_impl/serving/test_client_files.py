"""The labels and thresholds beside plain clients."""

import dataclasses
import json

from keras_bert_impl.serving.clients import label_settings
from keras_bert_impl.serving.opened_model import open_model
from tests.support.model_folders import write_classifier


def test_labels_and_thresholds_are_said(tmp_path):
    folder = write_classifier(tmp_path / "model", ["rude", "loud"])
    opened = open_model(folder)
    assert label_settings(opened) == {"labels": ["rude", "loud"]}
    extra = {
        **opened.source.config.extra,
        "problem_type": "multi_label_classification",
        "task_specific_params": {"keras_bert_impl": {"null_score_diff_threshold": -1.5}},
    }
    config = opened.source.config.replace(extra=extra)
    changed = dataclasses.replace(opened, source=dataclasses.replace(opened.source, config=config))
    assert json.loads(json.dumps(label_settings(changed))) == {
        "labels": ["rude", "loud"],
        "threshold": 0.5,
        "null_score_diff_threshold": -1.5,
    }


def test_a_number_has_no_labels(tmp_path):
    assert label_settings(open_model(write_classifier(tmp_path / "model", ["score"]))) == {}
