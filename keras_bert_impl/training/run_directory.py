"""The folder of a run: the names of its files, and its lock."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from keras_bert_impl.checkpoints.run_folder import (
    BEST_CHECKPOINT,
    CHECKPOINTS,
    FINISHED_FILE,
    MODEL,
    OUTGROWN_FILE,
    finished_steps,
    steps_in,
)
from keras_bert_impl.files import make_folder, open_whole, owned, without_links

_ADAPTER = "adapter"
_FOLDERS = (CHECKPOINTS, BEST_CHECKPOINT, "events", MODEL, _ADAPTER)


class RunDirectory:
    """One training run's folder; `open` makes it.

    Example:
        >>> str(RunDirectory("run").metrics)
        'run/metrics.jsonl'
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.flags = self.path / "flags.cfg"  # repeats the run
        self.metrics = self.path / "metrics.jsonl"  # an object a logged step
        self.evaluations = self.path / "evaluations.jsonl"  # an object a held-out evaluation
        self.events = self.path / "events"  # TensorBoard's folder
        self.learning_curve = self.path / "learning_curve.png"
        self.checkpoints = self.path / CHECKPOINTS
        self.best_checkpoint = self.path / BEST_CHECKPOINT  # of the best held-out evaluation
        self.model = self.path / MODEL  # exists when training is complete
        self.adapter = self.path / _ADAPTER  # of a run that trains adapters: them and the head
        self.eval_results = self.path / "eval_results.txt"  # the last evaluation
        self.evaluated_on = self.path / ".evaluated_on"  # the held-out set that this is of
        self.guesses = self.path / "guesses.json"  # what guessing reaches in the evaluations

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "RunDirectory":
        """Makes the folder where it is missing."""
        return cls(make_folder(path))

    def read_eval_results(self) -> dict[str, float]:
        """The figures of `eval_results.txt`; none without one."""
        if not self.eval_results.is_file():
            return {}
        lines = self.eval_results.read_text(encoding="utf-8").splitlines()
        values = (line.split(" = ") for line in lines)
        return {name: int(text) if text.isdigit() else float(text) for name, text in values}

    def newest_step(self) -> int:
        """The step of the newest checkpoint; 0 without one."""
        return next(iter(steps_in(self.checkpoints)), 0)

    def kept_before_training(self) -> str:
        """What a stop leaves that comes before the training goes on, in words.

        Example:
            >>> RunDirectory("/no/such/run").kept_before_training()
            'training had not begun, and the same command begins it'
        """
        if step := self.newest_step():
            kept = f"the checkpoint of step {step:,} is kept"
            return f"{kept}, and the same command continues from it"
        return "training had not begun, and the same command begins it"

    def finished_step(self) -> int | None:
        """The last step of the run whose `model/` is complete; None before it is."""
        return finished_steps(self.path)[0]

    def best_step(self) -> int | None:
        """The step whose weights `model/` has, where the best were chosen; else None."""
        return finished_steps(self.path)[1]

    def is_written(self, step: int) -> bool:
        """Whether `model/` is that of a run that ended at `step`."""
        return self.finished_step() == step and self.model.is_dir()

    def write_finished_step(self, step: int, best_step: int | None = None) -> None:
        """Notes, after `model/` was written, that the run ended."""
        with open_whole(self.path / FINISHED_FILE) as file:
            file.write(f"{step}\n" if best_step is None else f"{step} {best_step}\n")
        (self.path / OUTGROWN_FILE).unlink(missing_ok=True)

    def forget_end(self) -> None:
        """Notes that the run goes on beyond its model, of whose step its folder still knows."""
        (self.path / FINISHED_FILE).replace(self.path / OUTGROWN_FILE)

    def evaluated_step(self) -> int | None:
        """The step that `eval_results.txt` is of; None without one."""
        step = self.read_eval_results().get("global_step")
        return step if isinstance(step, int) else None

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Inside the block no other process can train here; a process that is killed lets go."""
        self.check_names()
        busy = (
            f"{self.path}: another process is training in this folder; wait for its end, stop it, "
            "or name another `output_dir`."
        )
        with owned(self.path / ".lock", busy):
            yield

    def check_names(self) -> None:
        """Sees that nothing is written through a link that stands where a folder will."""
        for name in _FOLDERS:
            without_links(self.path / name)

    def write_flags(self, flags: str) -> None:
        """Keeps the flags of the present command."""
        with open_whole(self.flags) as file:
            file.write(flags)

    def write_eval_results(self, results: dict[str, float], held_out: str = "") -> None:
        r"""Writes `eval_results.txt`: sorted names, as the original does; and what it is of.

        Example:
            >>> import tempfile
            >>> run = RunDirectory.open(tempfile.mkdtemp())
            >>> run.write_eval_results({"loss": 0.5, "global_step": 7})
            >>> run.eval_results.read_text()
            'global_step = 7\nloss = 0.5\n'
        """
        self.evaluated_on.unlink(missing_ok=True)
        with open_whole(self.eval_results) as file:
            file.writelines(f"{name} = {results[name]}\n" for name in sorted(results))
        if held_out:
            with open_whole(self.evaluated_on) as file:
                file.write(held_out)
