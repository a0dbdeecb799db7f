"""What a model must have that is scored, or answers, without being trained first."""

from pathlib import Path

from keras_bert_impl.checkpoints.model_source import ModelSource, label_names
from keras_bert_impl.checkpoints.restore import RestoreReport
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.training.run_directory import RunDirectory


def check_trained(
    directory: RunDirectory, source: ModelSource, config: BertConfig, task: str
) -> None:
    """Refuses to score without a model, or one whose classes mean something else.

    Args:
        directory: the run's folder.
        source: the model.
        config: its configuration as the task wants it.
        task: the task's name.

    Raises:
        UserError: there is no model, or its labels are others.
    """
    if source.checkpoint is None:
        raise UserError(
            f"{directory.path}: holds no trained model to score (no {directory.model.name}/); add "
            "`do_train=True`, or name a fine-tuned model with `init_checkpoint`."
        )
    found = [label.lower() for label in source.labels]
    wanted = _label_names(config)
    # Without labels the head is missing; a task without (choices) takes a head of one score.
    as_many = not found or not wanted or len(found) == len(wanted)
    unnamed = as_many and all(name.startswith("label_") for name in found)
    # In the run's own model the user may have named the classes otherwise.
    own = Path(source.checkpoint) == directory.model
    renamed = own and set(found) != set(wanted)
    if found != wanted and not unnamed and not renamed:
        raise UserError(
            f"{source.checkpoint}: its labels are {', '.join(found)}, but those of {task} are "
            f"{', '.join(wanted)}, in this order; name a model that was trained for this task "
            "here, or add `do_train=True`."
        )


def check_head_is_trained(report: RestoreReport, source: ModelSource, task: str) -> None:
    """Refuses to score or serve a head that was never trained.

    Args:
        report: of the restore.
        source: the model.
        task: the task's name.

    Raises:
        UserError: the model had no weights for the head.
    """
    new_head = [path for path in report.new if not path.startswith(("pooler", "embeddings"))]
    if new_head:
        raise UserError(
            f"{source.checkpoint}: holds no trained head for {task} (its {new_head[0]} is "
            "missing); add `do_train=True` or name a fine-tuned model directory."
        )


def _label_names(config: BertConfig) -> list[str]:
    """The names of a configuration's labels in the order of the classes, in small letters.

    Example:
        >>> _label_names(BertConfig(vocab_size=9, extra={"id2label": {"1": "Yes", "0": "No"}}))
        ['no', 'yes']
    """
    names = label_names(config)
    by_class = sorted(names, key=lambda number: (len(number), number))
    return [names[number].lower() for number in by_class]
