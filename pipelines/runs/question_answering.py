"""Fine-tuning for questions: train, score, answer."""

from typing import TYPE_CHECKING

from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.runs.fine_tuning_start import starting_point
from pipelines.runs.question_answering_config import RunSquadConfig
from pipelines.tasks.questions.predictions import AnswerSettings
from pipelines.tasks.questions.question_task import QuestionTask
from pipelines.tasks.questions.trivia_files import Evidence

if TYPE_CHECKING:
    from pipelines.runs.fine_tuning import FineTuningResults


def run_squad(config: RunSquadConfig) -> "FineTuningResults":
    """Trains for, scores and answers questions; see `fine_tune`.

    Raises:
        UserError: an option, a file or a checkpoint is not what it should be.
    """
    from pipelines.runs.fine_tuning import fine_tune  # TensorFlow

    return fine_tune(config, task_of)


def task_of(config: RunSquadConfig) -> QuestionTask:
    """The task that a configuration describes, for the model that the run starts from.

    Raises:
        UserError: there is no such model.
    """
    start = starting_point(config, RunDirectory.open(config.output_dir))
    return QuestionTask(
        text=start.text,
        train_file=config.train_file,
        predict_file=config.predict_file,
        doc_stride=config.doc_stride,
        max_query_length=config.max_query_length,
        answer_settings=AnswerSettings(
            config.n_best_size, config.max_answer_length, config.version_2_with_negative
        ),
        null_score_diff_threshold=config.threshold(),
        padding_competes=not config.trim_padding,
        evidence=Evidence(config.evidence_dir, config.evidence_words),
        metric=config.metric,
    )
