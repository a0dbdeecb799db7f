"""The tasks there are, by name."""

from keras_bert_impl.errors import UserError
from pipelines.tasks.glue import GLUE_TASKS
from pipelines.tasks.task import Task

_TASKS: dict[str, Task] = {task.name: task for task in GLUE_TASKS}


def task_names() -> tuple[str, ...]:
    """The names that `find_task` knows.

    Example:
        >>> task_names()[:3]
        ('CoLA', 'SST-2', 'MRPC')
    """
    return tuple(_TASKS)


def find_task(name: str) -> Task:
    """Gives the task of a name; case, hyphens and underscores do not matter.

    Raises:
        UserError: there is no such task.

    Example:
        >>> find_task("cola").name, find_task("STSB").name
        ('CoLA', 'STS-B')
    """
    for known, task in _TASKS.items():
        if _plain(known) == _plain(name):
            return task
    raise UserError(f"--task_name={name}: there is no such task; choose {', '.join(task_names())}.")


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
