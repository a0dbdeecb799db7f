from pathlib import Path

import pytest

from keras_bert_impl.checkpoints.model_source import ModelSource
from keras_bert_impl.serving.task_settings import with_task_settings
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.runs.fine_tuning_config import FineTuningConfig
from pipelines.runs.fine_tuning_start import starting_point, with_trained_length
from tests.support.model_folders import tiny_config, write_classifier


def start_of(folder, **options):
    config = FineTuningConfig(output_dir=folder / "run", **options)
    return starting_point(config, RunDirectory.open(config.output_dir)).checkpoint


def test_the_runs_own_model_is_scored_where_there_is_one(tmp_path):
    given = write_classifier(tmp_path / "given", ["no", "yes"])
    assert start_of(tmp_path, init_checkpoint=str(given)) == Path(given)
    own = write_classifier(tmp_path / "run" / "model", ["no", "yes"])
    assert start_of(tmp_path, init_checkpoint=str(given)) == own
    assert start_of(tmp_path, init_checkpoint=str(given), do_train=True) == Path(given)


@pytest.mark.parametrize(
    ("options", "length"),
    [
        ({}, 12),  # as it was trained
        ({"max_seq_length": 10}, 10),
        ({"do_train": True}, 128),
    ],
)
def test_without_training_rows_are_as_long_as_in_training(tmp_path, options, length):
    trained = ModelSource(None, with_task_settings(tiny_config(), {"max_seq_length": 12}), None)
    config = FineTuningConfig(output_dir=tmp_path, **options)
    assert with_trained_length(config, trained).max_seq_length == length


def test_a_model_that_says_no_length_leaves_the_default(tmp_path):
    config = FineTuningConfig(output_dir=tmp_path)
    assert with_trained_length(config, ModelSource(None, tiny_config(), None)) == config
