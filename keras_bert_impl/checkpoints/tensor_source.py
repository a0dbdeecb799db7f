"""What every checkpoint can be asked for, whatever its format."""

import dataclasses
from typing import Protocol

import numpy as np

from keras_bert_impl.checkpoints.names import Names
from keras_bert_impl.errors import UserError


@dataclasses.dataclass(frozen=True)
class FoundTensor:
    """A tensor of a checkpoint that answers to one of our weights.

    Attributes:
        name: its name in the checkpoint.
        turned: whether it is the transpose of our weight.
    """

    name: str
    turned: bool


class TensorSource(Protocol):
    """An open checkpoint."""

    location: str
    """Where it lies, for messages."""

    def find(self, names: Names) -> FoundTensor | None:
        """The tensor that answers to a weight, or None."""

    def names(self) -> list[str]:
        """All names in the checkpoint, sorted."""

    def shape(self, name: str) -> tuple[int, ...]:
        """A tensor's shape as it lies there."""

    def read(self, name: str) -> np.ndarray:
        """A tensor as it lies there, of its own type."""

    def reason_to_ignore(self, name: str) -> str | None:
        """Why a tensor that no model needs is there ("optimizer slot"), or None if unknown."""


def read_weight(source: TensorSource, found: FoundTensor) -> np.ndarray:
    """Reads a found tensor as our weight stands: turned where it must be, type kept.

    Raises:
        UserError: it holds whole numbers, as quantized weights do.
    """
    array = source.read(found.name)
    if array.dtype.kind in "iub":
        raise UserError(
            f"{source.location}: {found.name} holds {array.dtype} numbers; quantized weights "
            "cannot be read, name the model before it was quantized."
        )
    return np.ascontiguousarray(array.T) if found.turned else array


def weight_shape(source: TensorSource, found: FoundTensor) -> tuple[int, ...]:
    """The shape that `read_weight` will give."""
    shape = source.shape(found.name)
    return shape[::-1] if found.turned else shape
