"""The task that a run of the classifier is for."""

from pipelines.runs.fine_tuning_config import RunClassifierConfig
from pipelines.tasks.glue import GlueTask, find_task, plain_name
from pipelines.tasks.xnli import xnli_task


def task_of(config: RunClassifierConfig) -> GlueTask:
    """Gives the task of GLUE, or XNLI, that a configuration names.

    Raises:
        UserError: there is no such task or language.

    Example:
        >>> from pathlib import Path
        >>> task_of(RunClassifierConfig(
        ...     output_dir=Path("run"), task_name="xnli", data_dir=Path("XNLI"))).evaluation_splits
        ('dev_en',)
    """
    if plain_name(config.task_name) == "xnli":
        return xnli_task(config.data_dir, config.xnli, config.long_texts)
    return find_task(config.task_name).at(config.data_dir, config.long_texts)
