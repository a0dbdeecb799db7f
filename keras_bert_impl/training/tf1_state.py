"""The original's training state: weights with `adam_m`, `adam_v` and `global_step`."""

import os
from typing import Any

import numpy as np

from keras_bert_impl.checkpoints.google_tf1 import GoogleSource, write_google_checkpoint
from keras_bert_impl.checkpoints.names import Names
from keras_bert_impl.checkpoints.restore import names_of
from keras_bert_impl.errors import UserError
from keras_bert_impl.training.state import TrainingState

_STEP = "global_step"


def read_tf1_state(prefix: str | os.PathLike[str], state: TrainingState) -> int:
    """Takes over a run of the original: weights, both moments and the step.

    Args:
        prefix: the TF1 checkpoint, without ".index".
        state: a run's variables; the model is one of this project's.

    Returns:
        The steps done.

    Raises:
        UserError: the checkpoint lacks a weight or a slot, or has one of another shape.
    """
    source = GoogleSource(prefix)
    known = set(source.names())
    if _STEP not in known:
        raise UserError(
            f"{prefix}: holds no global_step, so it is no training checkpoint; take its weights "
            "with `init_checkpoint` alone."
        )
    for names, variables in _rows(state):
        for suffix, variable in variables.items():
            name = names.google + suffix
            if name not in known:
                raise UserError(
                    f"{prefix}: lacks {name}, so the run cannot be continued; take its weights "
                    "with `init_checkpoint` alone."
                )
            value = source.read(name)
            transposed = value.T if names.google_transposed else value
            if transposed.shape != tuple(variable.shape):
                raise UserError(
                    f"{prefix}: {name} has shape {list(value.shape)}, which does not fit the "
                    "model; give the configuration that belongs to it."
                )
            variable.assign(transposed)
    return int(source.read(_STEP))


def write_tf1_state(prefix: str | os.PathLike[str], state: TrainingState, step: int) -> None:
    """Writes a run's state as the original would, so that the original can continue it.

    Args:
        prefix: the TF1 checkpoint, without ".index".
        state: the run's variables.
        step: the steps done.
    """
    tensors: dict[str, Any] = {_STEP: np.asarray(step, np.int64)}
    for names, variables in _rows(state):
        for suffix, variable in variables.items():
            value = np.asarray(variable)
            tensors[names.google + suffix] = value.T if names.google_transposed else value
    write_google_checkpoint(prefix, tensors)


def _rows(state: TrainingState) -> list[tuple[Names, dict[str, Any]]]:
    """For each weight its names, and the weight and its moments by the suffix of their names."""
    by_path = {names.ours: names for names in names_of(state.model)}
    moments = zip(
        state.model.trainable_variables,
        state.optimizer.first_moments,
        state.optimizer.second_moments,
        strict=True,
    )
    return [
        (by_path[weight.path], {"": weight, "/adam_m": first, "/adam_v": second})
        for weight, first, second in moments
    ]
