"""Model directories of tasks: opened and served by the task that trained them.

A classifier, an encoder or a masked-LM model is served by the library as what it is. A task that
answers in another way (windows joined, words put together) is found by the name that its model
directory gives under `task`; see `keras_bert_impl.checkpoints.task_settings`.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.checkpoints.task_settings import task_settings
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from pipelines.fine_tuning.task import Task
from pipelines.tasks.choices.task import ChoiceTask
from pipelines.tasks.questions.task import QuestionTask
from pipelines.tasks.tagging.task import TaggingTask

if TYPE_CHECKING:
    from keras_bert_impl.serving.opened_model import OpenedModel
    from keras_bert_impl.serving.signatures import ServedModel

SERVED_TASKS: dict[str, Callable[[BertConfig], Task[Any, Any]]] = {
    family.name: family.of_model for family in (ChoiceTask, QuestionTask, TaggingTask)
}
"""The tasks that serve their models themselves: name → the task of a model."""

_BY_ARCHITECTURE = {"BertForQuestionAnswering": QuestionTask.name}
"""The tasks of published models, whose directories name none."""


def open_and_serve(
    folder: str | os.PathLike[str],
    *,
    top_k: int = 10,
    max_seq_length: int | None = None,
    **description: Any,
) -> "tuple[OpenedModel, ServedModel]":
    """Opens a model directory and gives its signatures: the task's own, or the library's.

    Args:
        folder: the model directory.
        top_k: how many tokens are given for each [MASK].
        max_seq_length: texts are truncated to it; by default as in fine-tuning.
        **description: what no file of the directory says, as for `find_model`.

    Raises:
        UserError: the directory is no model directory, or lacks weights of the task's model.
    """
    source = find_model(folder, **description)
    name = task_settings(source.config).get("task") or _BY_ARCHITECTURE.get(source.architecture, "")
    make_task = SERVED_TASKS.get(name)
    if make_task is None:
        # TensorFlow: a missing model is told before it is loaded.
        from keras_bert_impl.serving.export import serve_model
        from keras_bert_impl.serving.opened_model import open_model

        opened = open_model(folder, **description)
        return opened, serve_model(opened, top_k, max_seq_length)
    task = make_task(source.config)
    opened = open_task_model(folder, task, **description)
    return opened, task.served(opened, max_seq_length)


def open_task_model(
    folder: str | os.PathLike[str], task: Task[Any, Any], **description: Any
) -> "OpenedModel":
    """Opens a model directory as the model of a task.

    Args:
        folder: the model directory.
        task: the task that trained it.
        **description: what no file of the directory says, as for `find_model`.

    Raises:
        UserError: the directory is no model directory, or lacks weights of the task's model.
    """
    from keras_bert_impl.serving.opened_model import open_model

    opened = open_model(folder, build=lambda source: task.head(source.config).model, **description)
    missing = sorted(opened.untrained - {"pooler"})
    if missing:
        raise UserError(
            f"{folder}: holds no trained model for {task.name} (its {missing[0]} is missing); name "
            "a fine-tuned model directory."
        )
    return opened
