"""The units that a regression learns in, and its head's weights in those of the labels."""

from typing import NamedTuple

import numpy as np


class LabelUnits(NamedTuple):
    """The units that a regression learns in: those in which labels have mean 0 and deviation 1.

    Attributes:
        mean: of the training labels.
        deviation: of the training labels, more than 0.
    """

    mean: float
    deviation: float

    def fold(self, path: str, weight: np.ndarray) -> np.ndarray:
        """A weight of a model that gives numbers in the labels' units; the head's are changed.

        Args:
            path: its name.
            weight: as it was learned.

        Example:
            >>> LabelUnits(3.0, 2.0).fold("classifier/dense/bias", np.float32([0.5]))
            array([4.], dtype=float32)
        """
        offset = {"classifier/dense/kernel": 0.0, "classifier/dense/bias": self.mean}.get(path)
        if offset is None:
            return weight
        # In float64, so that each number is rounded once.
        return (weight.astype(np.float64) * self.deviation + offset).astype(weight.dtype)
