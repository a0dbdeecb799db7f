"""The folder of a training run as a place of models: which of its checkpoints a path means.

```
run/checkpoints/step-00001200/   state.index, state.data-…   every variable of the run
                                 config.json, vocab.txt, …   what a model directory says
                                 weights.json                which variable is which weight
                                 checkpoint.json             the step and the settings
run/best_checkpoint/             the same, of the best held-out evaluation
run/model/                       at the end
```
"""

import re
from pathlib import Path

from keras_bert_impl.errors import reading

STATE, STEP_FILE, NAMES_FILE = "state", "checkpoint.json", "weights.json"
CHECKPOINTS, BEST_CHECKPOINT, MODEL = "checkpoints", "best_checkpoint", "model"
FINISHED_FILE = ".finished"
"""Holds the last step of a finished run, and the step of `model/` where that is the best one."""
OUTGROWN_FILE = ".finished_before"
"""What the file above held, of a run that is on its way to a later end."""
AVERAGES = "ema"
"""The group of variables that are averages of the weights, where a run keeps them."""
_STEP = re.compile(r"^step-([0-9]{1,18})$")


def is_run_checkpoint(folder: Path) -> bool:
    """Whether a folder is one checkpoint of a run, of whatever version of this package."""
    return (folder / STEP_FILE).is_file()


def variable_key(group: str, number: int) -> str:
    """The name that TensorFlow gives a variable of a group in a checkpoint's files."""
    return f"{group}/{number}/.ATTRIBUTES/VARIABLE_VALUE"


def steps_in(folder: Path) -> list[int]:
    """The steps of all complete checkpoints in a folder, the newest first."""
    if not folder.is_dir():
        return []
    found = (_STEP.match(child.name) for child in folder.iterdir())
    return sorted((int(match.group(1)) for match in found if match), reverse=True)


def step_folder(folder: Path, step: int) -> Path:
    """The checkpoint of a step."""
    return folder / f"step-{step:08d}"


def newest_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint in a folder of checkpoints, or in that of a run; None without one.

    In a run's folder only one that is newer than its `model/` counts.
    """
    of_run, steps = folder / CHECKPOINTS, steps_in(folder)
    if steps:
        return step_folder(folder, steps[0])
    newest = next(iter(steps_in(of_run)), None)
    if newest is None:
        return None
    finished = finished_steps(folder)[0] or finished_steps(folder, OUTGROWN_FILE)[0]
    has_newer_model = (folder / MODEL).is_dir() and newest <= (finished or newest)
    return None if has_newer_model else step_folder(of_run, newest)


def finished_steps(run: Path, mark: str = FINISHED_FILE) -> tuple[int | None, int | None]:
    """The last step of a finished run, and the step whose weights are the best and in `model/`.

    None where the run is not finished, or its model has the weights of the last step.
    """
    with reading(run / mark, "the mark of a finished run", "remove it and resume the run"):
        words = path.read_text().split() if (path := run / mark).is_file() else []
        last, best, *_ = [*map(int, words), None, None]
    return last, best
