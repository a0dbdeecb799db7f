"""Models of a run from before its end: what later tells how scores grow with its steps."""

from collections.abc import Callable
from pathlib import Path

from keras_bert_impl.training.run import Hook, Run
from pipelines.runs.pretraining_config import kept_model


class KeepModels(Hook):
    """Writes the model directory every so many steps.

    A model that a kill kept from being written is made up for when the run is resumed.

    Args:
        every: steps between two models; 0 keeps none.
        write: writes the model into a folder.
    """

    def __init__(self, every: int, write: Callable[[Path], None]) -> None:
        self._every, self._write = every, write

    def begin(self, run: Run) -> None:
        """Makes up for the model of the step that the run resumes from."""
        if run.step:
            self._keep(run)

    def after_call(self, run: Run) -> None:
        """Writes a model where one is due."""
        self._keep(run)

    def _keep(self, run: Run) -> None:
        folder = kept_model(run.directory.path, run.step)
        if run.is_chief and run.is_due(self._every) and not folder.is_dir():
            self._write(folder)
