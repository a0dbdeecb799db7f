"""A profile of a few steps, to be opened in TensorBoard."""

from pathlib import Path

import tensorflow as tf


class Profiler:
    """Profiles the steps from the first to the last given.

    Args:
        steps: first and last step, counted from 1; None profiles nothing.
        folder: TensorBoard's folder.
    """

    def __init__(self, steps: tuple[int, int] | None, folder: Path) -> None:
        self._steps, self._folder, self._running = steps, folder, False

    def before(self, done: int) -> None:
        """Called with the steps done, before the next call."""
        if self._steps and not self._running and self._steps[0] - 1 <= done < self._steps[1]:
            tf.profiler.experimental.start(str(self._folder))
            self._running = True

    def after(self, done: int) -> None:
        """Called with the steps done, after a call whose figures are there."""
        if self._running and self._steps and done >= self._steps[1]:
            self.close()

    def close(self) -> None:
        """Writes the profile, if one is being taken."""
        if self._running:
            tf.profiler.experimental.stop()
            self._running = False
