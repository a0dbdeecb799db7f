"""The task that a run of the classifier is for."""

from dataclasses import replace
from typing import Any

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
    return _in_label_units(config, _task_of_files(config))


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
    if not isinstance(task.head_of, RegressionHead):
        if config.scale_labels is not None:
            raise UserError(
                f"`scale_labels={config.scale_labels}` is for numbers, but the labels of "
                f"{task.name} are classes; leave it out."
            )
        return task
    units = _label_units(config, task) if config.do_train else None
    if units is None:
        return task
    if isinstance(task, LabelledTexts):
        return replace(task, label_units=units)
    return replace(task, head_of=task.head_of.in_units(units))


def _label_units(
    config: RunClassifierConfig, task: GlueTask | LabelledTexts
) -> tuple[float, float] | None:
    """The units of the run's checkpoints, which mean nothing in others; else of its labels."""
    wanted, began = config.scale_labels, _settings_of_checkpoints(config)
    if began is not None:  # a run of before there were units goes on without
        kept = began.get("label_units")
        if wanted not in (None, kept is not None):
            raise UserError(
                f"`scale_labels={wanted}`: the checkpoints in {config.output_dir} were made "
                f"{'without' if kept is None else 'with'} scaled labels; leave it out, or name "
                "another `output_dir`."
            )
        return None if kept is None else (kept[0], kept[1])
    if not (isinstance(task, LabelledTexts) if wanted is None else wanted):
        return None
    where = next(iter(task.files(task.train_split)), task.name)
    return label_units(task.examples(task.train_split), where)


def _settings_of_checkpoints(config: RunClassifierConfig) -> dict[str, Any] | None:
    directory = RunDirectory(config.output_dir)
    if not directory.checkpoints.is_dir():
        return None
    from pipelines.runs.resume_identity import finished_settings  # TensorFlow

    return finished_settings(directory)


def _check_splits(config: RunClassifierConfig, task: LabelledTexts) -> None:
    """Refuses to score or to answer where there is nothing."""
    if config.do_eval and not task.evaluation_splits:
        raise UserError(
            "`do_eval=True`: there is no labelled file to score; name one with `dev_file`, give "
            "`dev_share`, or leave `do_eval` out."
        )
    if config.do_predict and not task.test_splits:
        raise UserError("`do_predict=True`: there is no file to answer; name one with `test_file`.")
