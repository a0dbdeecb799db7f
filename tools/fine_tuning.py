"""What every tool that fine-tunes does with its flags, and prints at its end."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipelines.fine_tuning.run import FineTuningResults
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from tools.config_flags import ConfigFlags

if TYPE_CHECKING:
    from pipelines.fine_tuning.options import FineTuningConfig
    from pipelines.many_runs.seeds import TaskOf


def show_results(results: "FineTuningResults") -> None:
    """Prints where the training stands, the figures, and the files that were written.

    Args:
        results: of the run. A figure that others reached with the same model stands beside ours.
    """
    training = results.training
    if training and not training.finished:
        print(f"Stopped after step {training.step}; the same command continues.")
    elif training and training.resumed_from == training.step:
        print("Training was finished before; its model is in model/ of the output folder.")
    for name, value in sorted(results.evaluation.items()):
        expected = results.expected.get(name)
        print(f"{name} = {value}" + (f"  ({expected})" if expected else ""))
    for path in results.prediction_files:
        print(f"wrote {path}")


_OF_MANY = ("num_seeds", "search")


def run_once_or_often(
    flags: ConfigFlags[Any], task_of: "TaskOf", set_up: Callable[[], None]
) -> None:
    """Runs what the flags say, and prints what came of it.

    Args:
        flags: the tool's; their config is a `FineTuningConfig`.
        task_of: gives the task that a config describes.
        set_up: prepares the process of one of several runs; a function of the tool's module.
    """
    config = flags.config(flags=flags.as_flagfile(), given=flags.given())
    if config.many.are_many:
        _run_often(config, flags, task_of, set_up)
        return
    from pipelines.fine_tuning.run import fine_tune

    show_results(fine_tune(config, task_of))


def _run_often(
    config: "FineTuningConfig",
    flags: ConfigFlags[Any],
    task_of: "TaskOf",
    set_up: Callable[[], None],
) -> None:
    from pipelines.many_runs.seeds import run_many

    results = run_many(config, task_of, partial(flags_of_one, flags), set_up)
    for line in results.report.lines() if results.report else ():
        print(line)
    for path in results.files:
        print(f"wrote {path}")
    if not results.finished:
        print("Stopped; the same command continues.")


def flags_of_one(flags: ConfigFlags[Any], changes: Mapping[str, Any]) -> str:
    """The command of one of several runs, as a flag file.

    Args:
        flags: of the command that stands for all of them.
        changes: what the one has for itself.
    """
    same = flags.as_flagfile(without=(*_OF_MANY, *changes))
    return same + "".join(flags.line(name, value) for name, value in changes.items())
