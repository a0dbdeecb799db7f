import json

from keras_bert_impl.training.checkpoints import changed_settings
from keras_bert_impl.training.metric_writers import JsonLines, read_json_lines


def test_lines_after_the_resumed_step_and_a_half_written_one_are_forgotten(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"step": 2}\n{"step": 3}\n{"st')
    with JsonLines(path, first_step=2) as lines:
        lines.write({"step": 3, "loss": 0.5})
    assert read_json_lines(path) == [{"step": 1}, {"step": 2}, {"step": 3, "loss": 0.5}]


def test_a_float32_survives_the_file_to_the_bit(tmp_path):
    path = tmp_path / "metrics.jsonl"
    value = 0.1000000014901161193847656
    with JsonLines(path, first_step=0) as lines:
        lines.write({"step": 1, "loss": value})
    assert read_json_lines(path)[0]["loss"] == value


def test_settings_are_compared_as_they_come_back_from_json():
    settings = {"seed": 1, "model": {"hidden_size": 8}, "files": ["a"], "clip_norm": 1.0}
    assert changed_settings(json.loads(json.dumps(settings)), settings) == []


def test_added_removed_and_changed_settings_are_named():
    changed = changed_settings({"a": 1, "b": 2}, {"b": 3, "c": 4})
    assert changed == [("a", 1, None), ("b", 2, 3), ("c", None, 4)]
