"""The task that a run of the classifier is for."""

import logging
from dataclasses import replace

from keras_bert_impl.errors import UserError
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.runs.fine_tuning_config import RunClassifierConfig
from pipelines.runs.fine_tuning_start import starting_point
from pipelines.tasks.glue import GlueTask, find_task
from pipelines.tasks.heads import RegressionHead
from pipelines.tasks.label_task import label_units
from pipelines.tasks.labelled_texts import LabelledTexts
from pipelines.tasks.open_labelled_texts import open_labelled_texts
from pipelines.tasks.xnli import xnli_task

_LOGGER = logging.getLogger(__name__)


def task_of(config: RunClassifierConfig) -> GlueTask | LabelledTexts:
    """Gives the task of GLUE, or XNLI, that a configuration names, or the one that its files make.

    Raises:
        UserError: there is no such task or language, or a file is not what it should be.

    Example:
        >>> from pathlib import Path
        >>> task_of(RunClassifierConfig(
        ...     output_dir=Path("run"), task_name="xnli", data_dir=Path("XNLI"))).evaluation_splits
        ('dev_en',)
    """
    task = _task_of_files(config)
    return _in_label_units(config, task) if config.do_train else task


def _task_of_files(config: RunClassifierConfig) -> GlueTask | LabelledTexts:
    if config.task_name is None or config.data_dir is None:
        trained = None
        if not config.do_train:
            trained = starting_point(config, RunDirectory.open(config.output_dir))
        task = open_labelled_texts(config.own, config.long_texts, trained)
        _check_splits(config, task)
        return task
    if config.is_xnli:
        return xnli_task(config.data_dir, config.xnli, config.long_texts)
    return find_task(config.task_name).at(config.data_dir, config.long_texts)


def _in_label_units(
    config: RunClassifierConfig, task: GlueTask | LabelledTexts
) -> GlueTask | LabelledTexts:
    """The task, which learns numbers in units of the training labels where it should.

    Raises:
        UserError: they are to be scaled, and are no numbers or always the same one.
    """
    own = isinstance(task, LabelledTexts)
    if not isinstance(task.head_of, RegressionHead):
        if config.scale_labels:
            raise UserError(
                f"`scale_labels=True` is for numbers, but the labels of {task.name} are classes; "
                "leave it out, or add `regression=True`."
            )
        return task
    if config.scale_labels is None and own and _began_without_units(config):
        _LOGGER.info("%s: goes on as it began, with labels as they are.", config.output_dir)
        return task
    if not (own if config.scale_labels is None else config.scale_labels):
        return task
    where = next(iter(task.files(task.train_split)), task.name)
    units = label_units(task.examples(task.train_split), where)
    if isinstance(task, LabelledTexts):
        return replace(task, label_units=units)
    return replace(task, head_of=task.head_of.in_units(units))


def _began_without_units(config: RunClassifierConfig) -> bool:
    """Whether the folder holds a run of before there were label units."""
    directory = RunDirectory(config.output_dir)
    if not directory.checkpoints.is_dir():
        return False
    from pipelines.runs.resume_identity import finished_settings  # TensorFlow

    settings = finished_settings(directory)
    return settings is not None and "label_units" not in settings


def _check_splits(config: RunClassifierConfig, task: LabelledTexts) -> None:
    """Refuses to score or to answer where there is nothing."""
    if config.do_eval and not task.evaluation_splits:
        raise UserError(
            "`do_eval=True`: there is no labelled file to score; name one with `dev_file`, give "
            "`dev_share`, or leave `do_eval` out."
        )
    if config.do_predict and not task.test_splits:
        raise UserError("`do_predict=True`: there is no file to answer; name one with `test_file`.")
