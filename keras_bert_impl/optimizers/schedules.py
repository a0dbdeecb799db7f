"""Learning rates: a linear warm-up, then one of four ways to go on."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert_impl.errors import UserError

# Each takes the functions to compute with (`numpy` or `keras.ops`), the step, the steps of the
# whole run and those of the warm-up, and gives the share of the peak.
Decay = Callable[[Any, Any, int, int], Any]


def _linear(xp: Any, step: Any, total: int, _warmup: int) -> Any:
    # As the original: the line starts at step 0, so the warm-up cuts its beginning off.
    return xp.maximum(0.0, 1.0 - step / total)


def _constant(xp: Any, step: Any, _total: int, _warmup: int) -> Any:
    return xp.ones_like(step)


def _cosine(xp: Any, step: Any, total: int, warmup: int) -> Any:
    done = (step - warmup) / max(1, total - warmup)
    return 0.5 * (1.0 + xp.cos(np.pi * xp.minimum(1.0, xp.maximum(0.0, done))))


def _inverse_sqrt(xp: Any, step: Any, _total: int, warmup: int) -> Any:
    # Joins the warm-up's end at the peak; without a warm-up it falls from step 1 on.
    first = float(max(1, warmup))
    return xp.sqrt(first / xp.maximum(first, step))


_DECAYS: dict[str, Decay] = {
    "linear": _linear,
    "constant": _constant,
    "cosine": _cosine,
    "inverse_sqrt": _inverse_sqrt,
}


@keras.saving.register_keras_serializable("keras_bert_impl")
class WarmupSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Learning rate with a linear warm-up, as a function of the steps already done.

    During the warm-up it is `peak * step / num_warmup_steps`, so the very first step has rate 0 and
    only fills the optimizer's moments, as in the original.

    Args:
        peak: the rate that the warm-up ends at.
        num_train_steps: steps of the whole run; `epochs * batches` in `fit`.
        num_warmup_steps: steps of the warm-up.
        decay: what follows it: "linear" (to 0 at `num_train_steps`, as the original does),
            "constant", "cosine" or "inverse_sqrt".

    Raises:
        UserError: an unknown `decay`.

    Example:
        >>> rate = WarmupSchedule(1.0, num_train_steps=100, num_warmup_steps=10)
        >>> [float(rate(step)) for step in (0, 5, 50, 100)]
        [0.0, 0.5, 0.5, 0.0]
        >>> optimizer = keras.optimizers.SGD(rate)
    """

    def __init__(
        self,
        peak: float,
        num_train_steps: int,
        num_warmup_steps: int = 0,
        decay: str = "linear",
    ) -> None:
        if decay not in _DECAYS:
            raise UserError(f"schedule={decay!r} is unknown; choose {' or '.join(_DECAYS)}.")
        self.peak, self.decay = peak, decay
        self.num_train_steps, self.num_warmup_steps = num_train_steps, num_warmup_steps

    def __call__(self, step: Any) -> Any:
        """The rate of a step, float32."""
        return self._rate(ops, ops.cast(step, "float32"))

    def at(self, step: int) -> float:
        """The rate of a step, computed in Python's own precision.

        Example:
            >>> WarmupSchedule(1.0, num_train_steps=100, num_warmup_steps=10).at(10)
            0.9
        """
        return float(self._rate(np, np.float64(step)))

    def _rate(self, xp: Any, step: Any) -> Any:
        decay = _DECAYS[self.decay]
        # `where` computes both sides: the warm-up's must be a number without a warm-up, too.
        rising = self.peak * step / max(1, self.num_warmup_steps)
        falling = self.peak * decay(xp, step, self.num_train_steps, self.num_warmup_steps)
        return xp.where(step < self.num_warmup_steps, rising, falling)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make this schedule again."""
        return {
            "peak": self.peak,
            "num_train_steps": self.num_train_steps,
            "num_warmup_steps": self.num_warmup_steps,
            "decay": self.decay,
        }
