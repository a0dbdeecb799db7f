import json

import pytest

from keras_bert_impl.checkpoints.task_settings import (
    keep_task_settings,
    served_length,
    task_settings,
    with_task_settings,
)
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError

PACKAGE = "keras_bert_impl"

SETTINGS = {"task": "SQuAD", "max_seq_length": 384, "doc_stride": 128}


def test_settings_come_back_from_a_written_configuration():
    config = with_task_settings(BertConfig(vocab_size=9), SETTINGS)
    written = config.to_hugging_face()
    assert written["task_specific_params"] == {"keras_bert_impl": SETTINGS}
    assert task_settings(BertConfig.from_dict(config.to_dict())) == SETTINGS


def test_a_model_directory_keeps_settings_beside_those_that_it_has(tmp_path):
    path = tmp_path / "config.json"
    others = {"summarization": {"prefix": "s"}}
    own = {"task": "squad", "threshold": 0.0}
    path.write_text(json.dumps({"x": 1, "task_specific_params": {**others, PACKAGE: own}}))
    keep_task_settings(tmp_path, {"threshold": -1.5})
    params = {**others, PACKAGE: {"task": "squad", "threshold": -1.5}}
    assert json.loads(path.read_text()) == {"x": 1, "task_specific_params": params}
    before = path.stat().st_mtime_ns
    keep_task_settings(tmp_path, {"threshold": -1.5})
    keep_task_settings(tmp_path, {})
    assert path.stat().st_mtime_ns == before


def test_what_others_keep_there_stays_and_old_settings_are_replaced():
    others = {"summarization": {"num_beams": 4}, "keras_bert_impl": {"task": "CoLA", "old": 1}}
    config = BertConfig(vocab_size=9, extra={"task_specific_params": others, "id2label": {}})
    changed = with_task_settings(config, SETTINGS)
    assert changed.extra["task_specific_params"]["summarization"] == {"num_beams": 4}
    assert changed.extra["id2label"] == {}
    assert task_settings(changed) == SETTINGS


@pytest.mark.parametrize("found", [None, "text", {}])
def test_a_model_without_settings_has_none(found):
    assert task_settings(BertConfig(vocab_size=9, extra={"task_specific_params": found})) == {}


def test_a_model_is_served_at_the_length_of_its_training_and_another_one_is_told(caplog):
    trained = with_task_settings(BertConfig(vocab_size=9), {"max_seq_length": 64})
    assert [served_length(trained, asked) for asked in (None, 64)] == [64, 64]
    assert not caplog.messages
    assert served_length(trained, 32) == 32
    assert "`max_seq_length=32` replaces 64" in caplog.text
    with pytest.raises(UserError, match="`max_seq_length=600` is more than the 512 positions"):
        served_length(trained, 600)
    assert served_length(BertConfig(vocab_size=9), None, default=384) == 384
