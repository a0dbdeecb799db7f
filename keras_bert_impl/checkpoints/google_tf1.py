"""google's TF1 checkpoints: `PREFIX.index` and `PREFIX.data-00000-of-00001`."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from keras_bert_impl.checkpoints.names import Names
from keras_bert_impl.checkpoints.tensor_source import FoundTensor
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import make_folder

_REASONS = (
    (re.compile(r"/(adam_m|adam_v|lamb_m|lamb_v|Adam|Adam_1|LAMB|LAMB_1)$"), "optimizer slot"),
    (
        re.compile(r"^(global_step|beta[12]_power|loss_scale|good_steps|current_loss_scale)$"),
        "training state",
    ),
)


class GoogleSource:
    """The tensors of a TF1 checkpoint.

    Args:
        prefix: the path without ".index".

    Raises:
        UserError: there is no such checkpoint, or it cannot be read.
    """

    def __init__(self, prefix: str | os.PathLike[str]) -> None:
        import tensorflow as tf  # late: importing it takes seconds

        self.location = str(prefix)
        self._errors = (tf.errors.OpError, ValueError, RuntimeError, LookupError)
        try:
            self._reader = tf.train.load_checkpoint(self.location)
            self._shapes = {
                name: tuple(shape)
                for name, shape in self._reader.get_variable_to_shape_map().items()
            }
        except self._errors as error:
            raise UserError(
                f"{prefix}: is no readable TF1 checkpoint; name its prefix (the path without "
                "'.index') and see that '.index' and '.data-…' lie side by side."
            ) from error

    def find(self, names: Names) -> FoundTensor | None:
        """The variable that answers to a weight: with "bert/" before it or without."""
        for candidate in (names.google, names.google.removeprefix("bert/")):
            if candidate in self._shapes:
                return FoundTensor(candidate, names.google_turned)
        return None

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._shapes)

    def shape(self, name: str) -> tuple[int, ...]:
        """A variable's shape."""
        return self._shapes[name]

    def read(self, name: str) -> np.ndarray:
        """A variable, of its own type."""
        try:
            return np.asarray(self._reader.get_tensor(name))
        except self._errors as error:
            raise UserError(
                f"{self.location}: variable {name!r} cannot be read; download the checkpoint again."
            ) from error

    def reason_to_ignore(self, name: str) -> str | None:
        """Why a variable that no model needs is there."""
        return next((reason for pattern, reason in _REASONS if pattern.search(name)), None)


def is_google_checkpoint(path: str | os.PathLike[str]) -> bool:
    """Whether `path` is the prefix of a TF1 checkpoint."""
    return Path(f"{path}.index").is_file()


def write_google_checkpoint(
    prefix: str | os.PathLike[str], variables: Mapping[str, np.ndarray]
) -> None:
    """Writes a TF1 checkpoint; its index, without which it is none, appears last.

    Args:
        prefix: the path without ".index".
        variables: arrays by google's names; the types are kept.
    """
    import tensorflow as tf

    final = Path(prefix)
    make_folder(final.parent)
    aside = final.with_name(f".{final.name}.{os.getpid()}.incomplete")
    names = sorted(variables)
    with tf.device("CPU"):
        tf.raw_ops.SaveV2(
            prefix=str(aside),
            tensor_names=names,
            shape_and_slices=[""] * len(names),
            tensors=[tf.constant(variables[name]) for name in names],
        )
    for suffix in (".data-00000-of-00001", ".index"):
        Path(f"{aside}{suffix}").replace(f"{final}{suffix}")
