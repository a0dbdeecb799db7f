"""Keeping float16 gradients away from 0: a scaled loss, and steps skipped where it overflows."""

from typing import Any

import tensorflow as tf

_START, _PATIENCE, _HIGHEST = 2.0**15, 2000, 2.0**24


class LossScale:
    """Multiplies the loss, divides the gradients, and finds the largest scale that holds.

    After `patience` good steps in a row the scale doubles; a step whose gradients are not finite
    is skipped and halves it. Other precisions than float16 use scale 1 and change nothing.

    Args:
        dynamic: True in float16.
        patience: good steps in a row before the scale doubles.

    Example:
        >>> scale = LossScale(dynamic=True, patience=1)
        >>> scale.update(tf.constant(False))
        >>> float(scale.value()), float(scale.skipped)
        (16384.0, 1.0)
    """

    FIGURES = ("loss_scale", "skipped_steps")

    def __init__(self, dynamic: bool, patience: int = _PATIENCE) -> None:
        self.dynamic, self._patience = dynamic, patience
        start = _START if dynamic else 1.0
        self.scale = _scalar(start, "loss_scale")
        self.good_steps = _scalar(0.0, "good_steps")
        self.skipped = _scalar(0.0, "skipped_steps")

    @property
    def variables(self) -> list[Any]:
        """What a checkpoint keeps."""
        return [self.scale, self.good_steps, self.skipped]

    def value(self) -> Any:
        """The factor on the loss, float32 scalar."""
        return self.scale.read_value() if self.dynamic else tf.constant(1.0)

    def unscale(self, gradients: list[Any]) -> list[Any]:
        """Divides gradients of the scaled loss."""
        if not self.dynamic:
            return gradients
        factor = 1.0 / self.value()
        return [gradient * factor for gradient in gradients]

    def figures(self, used: Any) -> Any:
        """The scale that a step used and the number of skipped steps, float32 [2].

        Args:
            used: the scale from before `update`.
        """
        if not self.dynamic:
            return tf.constant([1.0, 0.0])
        return tf.stack([used, self.skipped.read_value()])

    def reset(self) -> None:
        """Starts anew: another precision had no use for the scale."""
        self.scale.assign(_START if self.dynamic else 1.0)
        self.good_steps.assign(0.0)

    def update(self, finite: Any) -> None:
        """Counts a step; called once a step outside of the replicas."""
        good = tf.where(finite, self.good_steps + 1.0, 0.0)
        grow = good >= self._patience
        larger = tf.minimum(self.scale * 2.0, _HIGHEST)
        kept = tf.where(grow, larger, self.scale + 0.0)
        self.scale.assign(tf.where(finite, kept, tf.maximum(self.scale * 0.5, 1.0)))
        self.good_steps.assign(tf.where(grow, 0.0, good))
        self.skipped.assign_add(tf.where(finite, 0.0, 1.0))


def _scalar(value: float, name: str) -> Any:
    return tf.Variable(
        value,
        name=name,
        dtype=tf.float32,
        trainable=False,
        aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
    )
