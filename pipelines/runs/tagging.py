"""Fine-tuning for named entities: train, score, tag."""

from typing import TYPE_CHECKING

from keras_bert_impl.errors import UserError
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.runs.fine_tuning_start import starting_point
from pipelines.runs.tagging_config import RunNerConfig
from pipelines.tasks.tagging.open_tagging import open_tagging
from pipelines.tasks.tagging.tagging_task import TaggingTask

if TYPE_CHECKING:
    from pipelines.runs.fine_tuning import FineTuningResults


def run_ner(config: RunNerConfig) -> "FineTuningResults":
    """Trains for, scores and finds entities; see `fine_tune`.

    Raises:
        UserError: an option, a file or a checkpoint is not what it should be.
    """
    from pipelines.runs.fine_tuning import fine_tune  # TensorFlow

    return fine_tune(config, task_of)


def task_of(config: RunNerConfig) -> TaggingTask:
    """The task that a configuration describes.

    Raises:
        UserError: a file is not what it should be, or there is nothing to score or to tag.
    """
    trained = None
    if not config.do_train and (config.do_eval or config.do_predict):
        trained = starting_point(config, RunDirectory.open(config.output_dir))
    task = open_tagging(config.files, trained)
    if config.do_eval and not task.evaluation_splits:
        raise UserError(
            "`do_eval=True`: there is no file with tags to score; name one with `dev_file`, or "
            "leave `do_eval` out."
        )
    if config.do_predict and not task.test_splits:
        raise UserError("`do_predict=True`: there is no file to tag; name one with `test_file`.")
    return task
