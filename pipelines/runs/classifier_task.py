"""The task that a run of the classifier is for."""

from keras_bert_impl.errors import UserError
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.runs.fine_tuning_config import RunClassifierConfig
from pipelines.runs.fine_tuning_start import starting_point
from pipelines.tasks.glue import GlueTask, find_task, plain_name
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
    if config.task_name is None or config.data_dir is None:
        trained = None
        if not config.do_train:
            trained = starting_point(config, RunDirectory.open(config.output_dir))
        task = open_labelled_texts(config.own, config.long_texts, trained)
        _check_splits(config, task)
        return task
    if plain_name(config.task_name) == "xnli":
        return xnli_task(config.data_dir, config.xnli, config.long_texts)
    return find_task(config.task_name).at(config.data_dir, config.long_texts)


def _check_splits(config: RunClassifierConfig, task: LabelledTexts) -> None:
    """Refuses to score or to answer where there is nothing."""
    if config.do_eval and not task.evaluation_splits:
        raise UserError(
            "`do_eval=True`: there is no labelled file to score; name one with `dev_file`, give "
            "`dev_share`, or leave `do_eval` out."
        )
    if config.do_predict and not task.test_splits:
        raise UserError("`do_predict=True`: there is no file to answer; name one with `test_file`.")
