"""From a run's configuration to its task; the tool's tests hold whole runs."""

from pipelines.tasks.choices.options import RunSwagConfig
from pipelines.tasks.choices.task import task_of
from tests.support.choice_files import write_swag


def config(folder, **options):
    return RunSwagConfig(output_dir=folder / "run", data_dir=folder, do_train=True, **options)


def test_the_number_of_endings_is_that_of_the_training_file(tmp_path):
    write_swag(tmp_path / "train.csv", 4, choices=3)
    write_swag(tmp_path / "val.csv", 4, choices=3)
    write_swag(tmp_path / "test.csv", 4, choices=3, labelled=False)
    task = task_of(config(tmp_path))
    assert task.settings == {"num_choices": 3}
    assert (task.evaluation_splits, task.test_splits) == (["dev"], ["dev", "test"])
