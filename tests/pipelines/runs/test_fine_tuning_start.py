from pathlib import Path

from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.runs.fine_tuning_config import FineTuningConfig
from pipelines.runs.fine_tuning_start import starting_point
from tests.support.model_folders import write_classifier


def start_of(folder, **options):
    config = FineTuningConfig(output_dir=folder / "run", **options)
    return starting_point(config, RunDirectory.open(config.output_dir)).checkpoint


def test_the_runs_own_model_is_scored_where_there_is_one(tmp_path):
    given = write_classifier(tmp_path / "given", ["no", "yes"])
    assert start_of(tmp_path, init_checkpoint=str(given)) == Path(given)
    own = write_classifier(tmp_path / "run" / "model", ["no", "yes"])
    assert start_of(tmp_path, init_checkpoint=str(given)) == own
    assert start_of(tmp_path, init_checkpoint=str(given), do_train=True) == Path(given)
