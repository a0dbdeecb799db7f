"""From a run's configuration to its task; the tool's tests hold whole runs."""

from pathlib import Path

import pytest

from keras_bert_impl.checkpoints.task_settings import keep_task_settings
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.fine_tuning.start import starting_point, with_kept_options
from pipelines.tasks.questions.options import RunSquadConfig
from pipelines.tasks.questions.task import task_of
from tests.support.model_folders import write_encoder


@pytest.mark.parametrize(
    ("options", "threshold"),
    [
        ({"do_eval": True}, 1.25),
        ({"do_eval": True, "null_score_diff_threshold": "auto"}, None),
        ({"do_train": True, "train_file": Path("train.json")}, 0.0),
    ],
)
def test_scored_alone_the_threshold_is_the_one_kept_or_the_one_given(tmp_path, options, threshold):
    """One that was found on some questions is used for others; a model trained further has none."""
    model = write_encoder(tmp_path / "model")
    keep_task_settings(model, {"null_score_diff_threshold": 1.25})
    config = RunSquadConfig(
        output_dir=tmp_path / "run",
        init_checkpoint=str(model),
        predict_file=Path("dev.json"),
        version_2_with_negative=True,
        **options,
    )
    start = starting_point(config, RunDirectory.open(config.output_dir))
    config = with_kept_options(config, start)
    assert task_of(config).threshold == threshold
