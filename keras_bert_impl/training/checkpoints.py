"""Checkpoints of a run, and whether a run may go on from one."""

import contextlib
import copy
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import tensorflow as tf
from google.protobuf.message import DecodeError

from keras_bert_impl.checkpoints.run_folder import (
    AVERAGES,
    STATE,
    STEP_FILE,
    step_folder,
    steps_in,
    variable_key,
)
from keras_bert_impl.errors import UserError, reason_of, shown
from keras_bert_impl.files import remove, whole_folder
from keras_bert_impl.json_files import json_text, read_json_object
from keras_bert_impl.options import changed_settings
from keras_bert_impl.training.state import TrainingState, local_copy


def check_settings(
    before: Mapping[str, Any],
    now: Mapping[str, Any],
    where: str,
    defaults: Mapping[str, Any] = MappingProxyType({}),
    made: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Stops a resume that would continue another run."""
    younger = {name: defaults[name] for name in now if name in defaults and name not in before}
    changed = changed_settings({**before, **younger}, now)
    if any(name not in made for name, _, _ in changed):
        listed = ", ".join(
            f"`{name}` was {shown(old)} and is {shown(new)}" for name, old, new in changed
        )
        raise UserError(
            f"{where}: its checkpoint was made with other settings: {listed}; give the old values, "
            "another `output_dir`, or `allow_changed_flags=True` to continue all the same."
        )


State = Mapping[str, Sequence[Any]]

_UNREADABLE = (
    tf.errors.OpError,
    DecodeError,
    AssertionError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


def write_checkpoint(
    folder: Path,
    state: State,
    description: Mapping[str, Any],
    describe_model: Callable[[Path, State], None] = lambda _folder, _state: None,
) -> None:
    """Writes one checkpoint: a `tf.train.Checkpoint` and, last, its description."""
    with whole_folder(folder) as aside:
        lists = {name: list(values) for name, values in state.items()}
        tf.train.Checkpoint(**lists).write(str(aside / STATE))
        describe_model(aside, state)
        (aside / STEP_FILE).write_text(json_text(description, indent=1), encoding="utf-8")


def read_description(folder: Path) -> dict[str, Any]:
    """Reads what a checkpoint says about itself: `step` and the settings it was made with."""
    return read_json_object(folder / STEP_FILE)


def read_best(folder: Path, state: TrainingState) -> dict[str, Any]:
    """Gives a model the best checkpoint's weights, averaged where the run does; its description."""
    weights = {"weights": state.variables()["weights"]}
    try:
        description = read_description(folder)
        Checkpoints(folder.parent, weights, keep=1, writes=False).restore(folder, averaged=True)
    except (*_UNREADABLE, UserError) as error:
        raise UserError(
            f"{folder}: `save_best=True` needs it, but it cannot be read ({reason_of(error)}); end "
            "the run with the last weights by leaving `save_best` out."
        ) from error
    return description


class Checkpoints:
    """Saves and restores the variables of a run.

    Saving copies the variables (a pause of one copy in memory) and writes the copy in a thread
    while training goes on. Each checkpoint is a folder `step-N` that appears when it is complete.
    Of distributed variables one is kept. A hook may set `describe_model`, see `write_checkpoint`.
    """

    def __init__(
        self,
        folder: Path,
        state: State,
        keep: int,
        writes: bool = True,
        log: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self._folder, self._state, self._keep, self._writes = folder, state, keep, writes
        self._log = log
        self.describe_model: Callable[[Path, State], None] = lambda _folder, _state: None
        self.lasting: int | None = None  # the step of one that stays, however old
        self.seconds = 0.0  # what writing the last one took
        self._newest: int | None = None  # the step that was restored, or saved last
        self._broken = set[int]()  # could not be read, and drive out no good one
        self._copy: dict[str, list[Any]] = {}
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        if writes and folder.is_dir():
            for child in folder.glob(".*.incomplete"):  # what a kill left half-written
                shutil.rmtree(child, ignore_errors=True)

    def __enter__(self) -> "Checkpoints":
        return self

    def __exit__(self, *_: object) -> None:
        self.settle()

    def steps(self) -> list[int]:
        """The steps of all complete checkpoints, the newest first."""
        return [step for step in steps_in(self._folder) if step not in self._broken]

    def path(self, step: int) -> Path:
        """The folder of the checkpoint at `step`."""
        return step_folder(self._folder, step)

    def save(
        self,
        step: int,
        settings: Mapping[str, Any],
        kept: Mapping[str, Any] = MappingProxyType({}),
        regular: bool = True,
        best: Path | None = None,
    ) -> None:
        """Copies the variables now and writes them in the background; an earlier failure is raised.

        The folder of the `best` gets them first, so that a run that resumes finds its best, too.
        """
        self.wait()
        regular = regular and step != self._newest
        if not self._writes or not (regular or best):
            return
        self._newest = step if regular else self._newest
        self._copy_state()
        folders = ([best] if best else []) + ([self.path(step)] if regular else [])
        # A copy: hooks go on counting while the thread writes.
        description = {"step": step, "settings": dict(settings), "kept": copy.deepcopy(dict(kept))}
        self._thread = threading.Thread(
            target=self._write, args=(folders, description), name="checkpoint writer"
        )
        self._thread.start()

    def step_to_go_back_to(self, gets_later_end: Callable[[Mapping[str, Any]], Any]) -> int | None:
        """That of the plateau, of a run in its decay whose settings get a later end."""
        newest, *earlier = self.steps() or [0]
        description: dict[str, Any] = {}
        with contextlib.suppress(UserError):  # said when it is restored
            description = read_description(self.path(newest))
        plateau = description.get("kept", {}).get("plateau")
        goes_back = plateau in earlier and gets_later_end(description["settings"])
        return plateau if goes_back else None

    def forget_after(self, plateau: int) -> None:
        """Removes what was saved after the plateau."""
        later = [step for step in self.steps() if step > plateau]
        if not (self._writes and later):
            return
        self._log(
            f"{self._folder}: the run gets a later end and goes on from step {plateau:,}, before "
            f"its decay; the steps of the decay, up to {later[0]:,}, are done again."
        )
        for step in later:  # the newest first: a kill leaves the rest for the next start
            self._remove(step)

    def settle(self) -> None:
        """Returns when no checkpoint is being written; `wait` raises what went wrong."""
        if self._thread is not None:
            self._thread.join()

    def wait(self) -> None:
        """Returns when no checkpoint is being written; raises what went wrong in the last one."""
        self.settle()
        self._thread = None
        failure, self._failure = self._failure, None
        if isinstance(failure, (tf.errors.OpError, OSError)) and not isinstance(failure, UserError):
            raise UserError(
                f"{self._folder}: the checkpoint cannot be written ({reason_of(failure)}); free "
                "some space."
            ) from failure
        if failure is not None:
            raise failure

    def restore_newest(
        self,
        accept: Callable[[dict[str, Any]], None] = lambda _description: None,
        averaged: bool = False,
        only: int | None = None,
    ) -> dict[str, Any] | None:
        """Restores the newest checkpoint that can be read; gives its description, or None.

        Before that, `accept` sees the description, and raises to refuse it. No other one is looked
        at where one step is the `only` one.
        """
        steps = self.steps() if only is None else [only]
        for step in steps:
            try:
                description = read_description(self.path(step))
            except UserError as error:
                self._skip(step, error)
                continue
            accept(description)
            try:
                self.restore(self.path(step), averaged)
            except _UNREADABLE as error:
                self._skip(step, error)
                continue
            self._newest = step
            return description
        if not steps:
            return None
        if only is not None:
            raise UserError(
                f"{self.path(only)}: the run gets a later end and goes on from there, before its "
                "decay, but it cannot be read; give the run its former end."
            )
        raise UserError(
            f"{self._folder}: none of the {len(steps)} checkpoints can be read; delete the "
            "folder to start again, or name another `output_dir`."
        )

    def _skip(self, step: int, error: Exception) -> None:
        self._broken.add(step)
        self._log(
            f"{self.path(step)}: this checkpoint cannot be read ({reason_of(error)}) and is passed "
            "over."
        )

    def restore(self, folder: Path, averaged: bool = False) -> None:
        """Restores one checkpoint; the run's variables are touched only when all of it is read."""
        saved = tf.train.load_checkpoint(str(folder / STATE)).get_variable_to_shape_map()
        has_averages = variable_key(AVERAGES, 0) in saved
        names = {name: name for name in self._state if name != AVERAGES or has_averages}
        if averaged and has_averages:
            names["weights"] = AVERAGES
        self._check_shapes(folder, saved)
        values = self._empty_copy()
        read = tf.train.Checkpoint(**{names[name]: values[name] for name in names})
        status = read.read(str(folder / STATE))
        status.assert_existing_objects_matched()
        status.expect_partial()  # an evaluation reads the weights only
        for name in names:
            for variable, value in zip(self._state[name], values[name], strict=True):
                variable.assign(value)

    def _check_shapes(self, folder: Path, saved: Mapping[str, Sequence[int]]) -> None:
        for name, variables in self._state.items():
            for number, variable in enumerate(variables):
                shape = saved.get(variable_key(name, number))
                if shape is not None and list(shape) != list(variable.shape):
                    raise UserError(
                        f"{folder}: was made with a model of another shape ({list(shape)} where "
                        f"the present one has {list(variable.shape)}); give the configuration it "
                        "was made with, or another `output_dir`."
                    )

    def _write(self, folders: Sequence[Path], description: Mapping[str, Any]) -> None:
        start = time.monotonic()
        try:
            for folder in folders:
                write_checkpoint(folder, self._copy, description, self.describe_model)
            self._broken.discard(description["step"])
            self.seconds = (time.monotonic() - start) / len(folders)
            for step in self.steps()[self._keep :]:  # the oldest go
                if step != self.lasting:
                    self._remove(step)
        except BaseException as error:  # whatever it is: training must not go on without saves
            self._failure = error

    def _remove(self, step: int) -> None:
        """Removes a checkpoint; a kill leaves none that looks whole but is not."""
        leaving = self._folder / f".{self.path(step).name}.incomplete"
        remove(leaving)
        with contextlib.suppress(OSError):  # another process was faster
            self.path(step).rename(leaving)
        remove(leaving)

    def _copy_state(self) -> None:
        if not self._copy:
            self._copy = self._empty_copy()
        for name, variables in self._state.items():
            for variable, target in zip(variables, self._copy[name], strict=True):
                target.assign(local_copy(variable))

    def _empty_copy(self) -> dict[str, list[Any]]:
        with tf.device("/cpu:0"):
            return {
                name: [tf.Variable(tf.zeros(value.shape, value.dtype)) for value in variables]
                for name, variables in self._state.items()
            }
