"""Model directories of tasks: opened and served by the task that trained them.

A classifier, an encoder or a masked-LM model is served by the library as what it is. A task that
answers in another way (windows joined, words put together) is found by the name that its model
directory gives under `task`; see `keras_bert_impl.checkpoints.task_settings`.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from keras_bert_impl.checkpoints.model_source import ModelSource, architecture_of, find_model
from keras_bert_impl.checkpoints.restore import refuse_untrained, restore
from keras_bert_impl.checkpoints.task_settings import task_settings, with_labels
from keras_bert_impl.config import BertConfig
from keras_bert_impl.engines.kept_graph import UnbuiltModel
from keras_bert_impl.serving.answerer import Instance
from keras_bert_impl.serving.forms import Form, KnownModel
from pipelines.fine_tuning.task import Asked, Task
from pipelines.tables.files import Record, TableFile
from pipelines.tasks.choices.files import asked_of
from pipelines.tasks.choices.task import ChoiceTask
from pipelines.tasks.labels.rows import label_forms
from pipelines.tasks.questions.task import QuestionTask
from pipelines.tasks.tagging.task import TaggingTask

if TYPE_CHECKING:
    from keras_bert_impl.serving.opened_model import OpenedModel
    from keras_bert_impl.serving.signatures import ServedModel

_FAMILIES = (ChoiceTask, QuestionTask, TaggingTask)

SERVED_TASKS: dict[str, Callable[[BertConfig], Asked[Any, Any]]] = {
    family.name: family.of_model for family in _FAMILIES
}
"""The tasks that serve their models themselves: name → the task of a model."""

ASKED_OF_RECORDS: dict[str, Callable[[TableFile, Record], tuple[Instance, Mapping[str, Any]]]] = {
    "choice": asked_of
}
"""By kinds of answerers, what a record of a file asks, where columns are not called as inputs are,
and the record's other columns."""

# Of published models, whose directories name no task.
_BY_ARCHITECTURE = {family.ARCHITECTURE: family.name for family in _FAMILIES}
# By the class of a task's model its kept graph is found before the model is built.
_MODELS = {family.name: family.MODEL for family in _FAMILIES}


def open_and_serve(
    folder: str | os.PathLike[str],
    *,
    top_k: int = 10,
    max_seq_length: int | None = None,
    **description: Any,
) -> "tuple[OpenedModel, ServedModel]":
    """Opens a model directory and gives its signatures: the task's own, or the library's."""
    source = find_model(folder, **description)
    task = task_of(source.config)
    if task is None:
        # TensorFlow: a missing model is reported before it is loaded.
        from keras_bert_impl.serving.export import serve_model
        from keras_bert_impl.serving.opened_model import open_model

        opened = open_model(folder, **description)
        return opened, serve_model(opened, top_k, max_seq_length)
    opened = open_task_model(folder, task, **description)
    return opened, task.served(opened, max_seq_length)


def open_task_model(
    folder: str | os.PathLike[str], task: Task[Any, Any], **description: Any
) -> "OpenedModel":
    """Opens a model directory as the model of a task."""
    from keras_bert_impl.serving.opened_model import open_model

    return open_model(
        folder, build=lambda source: task.head(_with_labels(source)).model, **description
    )


def task_of(config: BertConfig) -> Asked[Any, Any] | None:
    """The task that serves a model itself; None where the library serves it as what it is."""
    architecture = architecture_of(config)
    name = task_settings(config).get("task") or _BY_ARCHITECTURE.get(architecture, "")
    return SERVED_TASKS[name](config) if name in SERVED_TASKS else None


def forms_of_task(model: KnownModel, max_seq_length: int | None = None) -> Sequence[Form]:
    """What a model of a task, or a classifier, is asked: the main form first; () of others.

    A model with labels and no task of its own is a classifier.
    """
    task = task_of(model.config)
    if task is not None:
        return task.forms(model, max_seq_length)
    return label_forms(model, max_seq_length) if model.labels else ()


def unbuilt_task_model(source: ModelSource, task: Task[Any, Any], policy: str) -> UnbuiltModel:
    """The model of a task, built where it is needed."""

    def build() -> Any:
        model = task.head(_with_labels(source), policy).model
        refuse_untrained(model, restore(model, source.tensors()), f"model for {task.name}")
        return model

    return UnbuiltModel(build, source, _MODELS[task.name])


def _with_labels(source: ModelSource) -> BertConfig:
    """The configuration with a name for each label that the weights have: not all files say one."""
    if not source.labels:
        return source.config
    return with_labels(source.config, source.labels)
