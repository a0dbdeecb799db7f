"""What is refused before a model is scored that was not trained for the task."""

import dataclasses
import json
from pathlib import Path

import pytest

from keras_bert_impl.checkpoints.restore import RestoreReport
from keras_bert_impl.errors import UserError
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.fine_tuning.options import FineTuningConfig
from pipelines.fine_tuning.start import check_head_is_trained, check_trained, starting_point
from tests.support.model_folders import tiny_config, write_classifier


def configured(*labels):
    names = {str(number): label for number, label in enumerate(labels)}
    return tiny_config(extra={"id2label": names})


def opened(folder, model=None):
    directory = RunDirectory.open(folder / "run")
    options = {"init_checkpoint": str(model)} if model else {}
    start = starting_point(FineTuningConfig(output_dir=directory.path, **options), directory)
    return directory, start


def test_the_same_labels_in_the_same_order_are_needed(tmp_path):
    directory, start = opened(tmp_path, write_classifier(tmp_path / "model", ["no", "yes"]))
    check_trained(directory, start, configured("No", "Yes"), "toy")
    with pytest.raises(UserError, match="its labels are no, yes, but those of toy are yes, no"):
        check_trained(directory, start, configured("yes", "no"), "toy")


def test_the_runs_own_model_may_have_renamed_labels(tmp_path):
    write_classifier(tmp_path / "run" / "model", ["bad", "good"])
    directory, start = opened(tmp_path)
    check_trained(directory, start, configured("no", "yes"), "toy")


def test_without_a_model_nothing_is_scored(tmp_path):
    directory, start = opened(tmp_path, write_classifier(tmp_path / "model", ["no"]))
    nothing = dataclasses.replace(start, checkpoint=None)
    with pytest.raises(UserError, match="holds no trained model to evaluate"):
        check_trained(directory, nothing, configured("no"), "toy")


def test_a_head_without_weights_is_named(tmp_path):
    _, start = opened(tmp_path, write_classifier(tmp_path / "model", ["no"]))
    start = dataclasses.replace(start, checkpoint=Path("model"))

    def report(*new):
        return RestoreReport("model", (), new, ())

    check_head_is_trained(report("pooler/dense/bias"), start, "toy")
    with pytest.raises(UserError, match=r"no trained head for toy \(its tagger/dense/bias is"):
        check_head_is_trained(report("pooler/dense/bias", "tagger/dense/bias"), start, "toy")


def test_unnamed_labels_are_those_of_the_task_where_there_are_as_many(tmp_path):
    """A published model whose `num_labels` is right and whose `id2label` is that of another one."""
    model = write_classifier(tmp_path / "model", ["a", "b", "c"])
    path = model / "config.json"
    stale = {"num_labels": 3, "id2label": {"0": "bad", "1": "good"}}
    path.write_text(json.dumps({**json.loads(path.read_text()), **stale}))
    directory, start = opened(tmp_path, model)
    assert start.labels == ("LABEL_0", "LABEL_1", "LABEL_2")
    check_trained(directory, start, configured("no", "yes", "may be"), "toy")
    with pytest.raises(UserError, match="its labels are label_0, label_1, label_2, but those of"):
        check_trained(directory, start, configured("no", "yes"), "toy")
