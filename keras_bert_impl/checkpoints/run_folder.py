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

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import check_file, open_input

STATE, STEP_FILE, NAMES_FILE = "state", "checkpoint.json", "weights.json"
CHECKPOINTS, BEST_CHECKPOINT, MODEL = "checkpoints", "best_checkpoint", "model"
FINISHED_FILE = ".finished"
"""Holds the last step of a finished run, and the step of `model/` where that is the best one."""
AVERAGES = "ema"
"""The group of variables that are averages of the weights, where a run keeps them."""
_STEP = re.compile(r"^step-([0-9]{1,18})$")
_MOST_OF_FINISHED = 1000  # bytes
_WHOLE_NUMBER = re.compile("[0-9]{1,18}")


def is_run_checkpoint(folder: Path) -> bool:
    """Whether a folder is one checkpoint of a run, of whatever version of this package."""
    return (folder / STEP_FILE).is_file()


def check_state_files(folder: Path) -> None:
    """Sees that a checkpoint's files of variables are files, before TensorFlow opens them."""
    for file in (folder / f"{STATE}.index", *folder.glob(f"{STATE}.data-*")):
        check_file(file)


def variable_key(group: str, number: int) -> str:
    """The name that TensorFlow gives a variable of a group in a checkpoint's files.

    Example:
        >>> variable_key("weights", 3)
        'weights/3/.ATTRIBUTES/VARIABLE_VALUE'
    """
    return f"{group}/{number}/.ATTRIBUTES/VARIABLE_VALUE"


def steps_in(folder: Path) -> list[int]:
    """The steps of all complete checkpoints in a folder, the newest first.

    Example:
        >>> import tempfile
        >>> steps_in(Path(tempfile.mkdtemp()))
        []
    """
    if not folder.is_dir():
        return []
    found = (_STEP.match(child.name) for child in folder.iterdir())
    return sorted((int(match.group(1)) for match in found if match), reverse=True)


def step_folder(folder: Path, step: int) -> Path:
    """The checkpoint of a step.

    Example:
        >>> step_folder(Path("run/checkpoints"), 1200).as_posix()
        'run/checkpoints/step-00001200'
    """
    return folder / f"step-{step:08d}"


def newest_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint in a folder of checkpoints, or in that of a run; None without one.

    In a run's folder only one that is newer than its `model/` counts.
    """
    of_run, steps = folder / CHECKPOINTS, steps_in(folder)
    if steps:
        return step_folder(folder, steps[0])
    newest = next(iter(steps_in(of_run)), None)
    finished, _ = finished_steps(folder)
    if newest is None or ((folder / MODEL).is_dir() and newest <= (finished or newest)):
        return None
    return step_folder(of_run, newest)


def finished_steps(run: Path) -> tuple[int | None, int | None]:
    """The last step of a finished run, and the step whose weights are the best and in `model/`.

    None where the run is not finished, or its model has the weights of the last step.

    Example:
        >>> import tempfile
        >>> run = Path(tempfile.mkdtemp())
        >>> _ = (run / FINISHED_FILE).write_text("20 15")
        >>> finished_steps(run)
        (20, 15)
    """
    try:
        with open_input(run / FINISHED_FILE) as file:
            words = file.read(_MOST_OF_FINISHED).decode().split()
    except (UserError, UnicodeDecodeError):
        words = []
    steps = (int(word) if _WHOLE_NUMBER.fullmatch(word) else None for word in words)
    last, best, *_ = [*steps, None, None]
    return last, best


def no_such_checkpoint(path: Path) -> UserError | None:
    """What to say of a path that can only mean a checkpoint, where there is none.

    Returns:
        The sentence; None where the path may mean something else.
    """
    parent = path.parent
    if path.is_dir():
        if path.name == CHECKPOINTS or (path / CHECKPOINTS).is_dir():
            return UserError(
                f"{path}: holds no model and no checkpoint yet; wait for the first one of the run."
            )
        return None
    if path.name == BEST_CHECKPOINT and parent.is_dir():
        return UserError(
            f"{path}: no such folder; the first evaluation of a run with `save_best` or "
            f"`eval_steps` writes it: wait for it, or name {parent} for the newest checkpoint."
        )
    if not _STEP.match(path.name) or not (there := steps_in(parent)):
        return None
    names = ", ".join(step_folder(parent, step).name for step in there)
    return UserError(
        f"{path}: no such checkpoint (a run keeps its newest ones, see `keep_checkpoint_max`); "
        f"name one of those that are there, {names}, or {parent} for the newest."
    )


@contextlib.contextmanager
def told_if_gone(checkpoint: Path | None) -> Iterator[None]:
    """Inside the block a checkpoint is read that its run may remove or replace meanwhile.

    Args:
        checkpoint: any model; a block without one, or with one of another form, is left alone.
    """
    before = _identity(checkpoint) if checkpoint else None
    # One that was found by its name may be gone before it is looked at.
    of_run = checkpoint and (is_run_checkpoint(checkpoint) or _STEP.match(checkpoint.name))
    try:
        yield
    except (UserError, OSError) as error:
        if not checkpoint or not of_run or (before and _identity(checkpoint) == before):
            raise
        raise UserError(
            f"{checkpoint}: was removed or replaced while it was read, because its run goes on; "
            f"name {checkpoint.parent} for the newest checkpoint."
        ) from error


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
