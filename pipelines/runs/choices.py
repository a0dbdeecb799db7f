"""Fine-tuning for endings: train, score, choose."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.task_settings import task_settings
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.runs.choices_config import RunSwagConfig
from pipelines.runs.fine_tuning_start import starting_point
from pipelines.tasks.choices.choice_files import read_choices
from pipelines.tasks.choices.choice_task import NAME, ChoiceFile, ChoiceTask

if TYPE_CHECKING:
    from pipelines.runs.fine_tuning import FineTuningResults


def run_swag(config: RunSwagConfig) -> "FineTuningResults":
    """Trains for, scores and chooses endings; see `fine_tune`.

    Raises:
        UserError: an option, a file or a checkpoint is not what it should be.
    """
    from pipelines.runs.fine_tuning import fine_tune  # TensorFlow

    return fine_tune(config, task_of)


def task_of(config: RunSwagConfig) -> ChoiceTask:
    """The task that a configuration describes.

    Raises:
        UserError: a file is missing, or there is nothing to score or to answer.
    """
    paths = {split: path for split in ("train", "dev", "test") if (path := config.file(split))}
    if config.do_train and "train" not in paths:
        raise UserError("`train_file` is missing; name a file with SWAG's columns.")
    if not config.do_train:
        paths.pop("train", None)
    if not paths:
        raise UserError("there is no file to score or to answer; name one with `dev_file`.")
    sources = {
        split: ChoiceFile(path, split != "test" or _is_labelled(path))
        for split, path in paths.items()
    }
    task = ChoiceTask(_num_choices(config, paths), sources)
    if config.do_eval and not task.evaluation_splits:
        raise UserError(
            "`do_eval=True`: there is no file with labels to score; name one with `dev_file`, or "
            "leave `do_eval` out."
        )
    if config.do_predict and not task.test_splits:
        raise UserError("`do_predict=True`: there is no file to answer; name one with `test_file`.")
    return task


def _is_labelled(path: Path) -> bool:
    return next(iter(read_choices(path, labelled=False))).label is not None


def _num_choices(config: RunSwagConfig, paths: Mapping[str, Path]) -> int:
    """The endings of an example: what the model was trained with, or the first file has."""
    if not config.do_train:
        start = starting_point(config, RunDirectory.open(config.output_dir))
        settings = task_settings(start.config)
        if settings.get("task") == NAME:
            return int(settings["num_choices"])
    first = next(iter(paths.values()))
    return len(next(iter(read_choices(first, labelled=False))).endings)
