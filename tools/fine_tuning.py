"""Parts that the tools for fine-tuning share: one run or several, the figures at the end."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from keras_bert_impl.interrupts import kept_so_far
from keras_bert_impl.training.run_directory import RunDirectory
from tools.config_flags import ConfigFlags
from tools.endings import CONTINUES, tell_stopped

if TYPE_CHECKING:
    from pipelines.fine_tuning.options import FineTuningConfig
    from pipelines.fine_tuning.run import FineTuningResults
    from pipelines.many_runs.seeds import TaskOf

_OF_MANY = ("num_seeds", "search")


def run_once_or_often(
    flags: ConfigFlags[Any], config: "FineTuningConfig", task_of: "TaskOf"
) -> None:
    """Runs what the flags say, and prints what came of it."""
    config = replace(config, flags=flags.as_flagfile(), given=flags.given())
    if not config.many.are_many:
        with _kept_at_the_start(config):
            from pipelines.fine_tuning.start import check_run

            checked = check_run(config, task_of)
            from pipelines.fine_tuning.run import fine_tune_checked  # TensorFlow: after the checks

        done = fine_tune_checked(checked)
        show_results(done)
        if (trained := done.training) and trained.finished and trained.is_new:
            print(f"wrote {config.output_dir}/model")
        return
    from pipelines.many_runs.seeds import run_many

    report = run_many(config, task_of, partial(flags_of_one, flags))
    if report.runs:
        print(*report.lines(), sep="\n")
        for ending in ("json", "tsv", "md", "png"):
            print(f"wrote {config.output_dir}/runs.{ending}")
    if not report.finished:
        tell_stopped(f"Stopped; finished runs and checkpoints are kept, and {CONTINUES}.")


def _kept_at_the_start(config: "FineTuningConfig") -> AbstractContextManager[None]:
    """Says of a stop that comes before anything is begun what there is of the run."""
    if not config.do_train:
        return nullcontext()
    return kept_so_far(RunDirectory(config.output_dir).kept_before_training())


def show_results(results: "FineTuningResults") -> None:
    """Prints where the training stands, the figures, and the files that were written.

    Args:
        results: of the run; a figure is shown with what guessing reaches.
    """
    from keras_bert_impl.training.guesses import line_of

    training = results.training
    if training and not training.finished:
        tell_stopped(f"Stopped after step {training.step:,}, which is saved; {CONTINUES}.")
    elif training and not training.is_new:
        print("Training was finished before; its model is in model/ of the output folder.")
    for name, value in sorted(results.evaluation.items()):
        print(line_of(name, value, results.guesses))
    for path in results.prediction_files:
        print(f"wrote {path}")


def flags_of_one(flags: ConfigFlags[Any], changes: Mapping[str, Any]) -> str:
    """The command of one of several runs, as a flag file."""
    same = flags.as_flagfile(without=(*_OF_MANY, *changes))
    return same + "".join(flags.line(name, value) for name, value in changes.items())
