"""Scores of a fine-tuned model by another engine."""

from pathlib import Path

import pytest

from keras_bert_impl.checkpoints.model_directory import GRAPHS_FOLDER
from keras_bert_impl.training.config import TrainingConfig
from pipelines.fine_tuning.run import fine_tune
from pipelines.tasks.labels.options import RunClassifierConfig
from pipelines.tasks.labels.task import task_of
from tests.support.glue_files import write_cola
from tests.support.model_folders import write_classifier


@pytest.mark.slow
def test_a_task_is_scored_by_openvino_as_by_tensorflow(tmp_path):
    pytest.importorskip("nncf", reason="needs the extra `openvino`")
    data = write_cola(tmp_path / "data")
    model = write_classifier(tmp_path / "model", ["unacceptable", "acceptable"])
    losses = []
    for options in (
        {},
        {"engine": "openvino"},
        {"engine": "openvino", "training": TrainingConfig(precision="int8")},
    ):
        config = RunClassifierConfig(
            task_name="CoLA",
            data_dir=Path(data),
            output_dir=tmp_path / "run",
            init_checkpoint=str(model),
            max_seq_length=12,
            do_eval=True,
            **options,
        )
        losses.append(fine_tune(config, task_of).evaluation["eval_loss"])
    assert losses[1] == pytest.approx(losses[0], abs=1e-5)
    assert losses[2] == pytest.approx(losses[0], abs=0.1)
    assert (model / GRAPHS_FOLDER / "BertClassifier_int8" / "model.xml").exists()
