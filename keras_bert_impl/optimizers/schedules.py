"""Learning rates: a linear warm-up, then one of five ways to go on."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert_impl.errors import UserError

# Each takes the functions to compute with (`numpy` or `keras.ops`), the step and the schedule, and
# gives the share of the peak.
Decay = Callable[[Any, Any, "WarmupSchedule"], Any]


def _linear(xp: Any, step: Any, of: "WarmupSchedule") -> Any:
    # As the original: the line starts at step 0, so the warm-up cuts its beginning off.
    return xp.maximum(0.0, 1.0 - step / of.num_train_steps)


def _constant(xp: Any, step: Any, _of: "WarmupSchedule") -> Any:
    return xp.ones_like(step)


def _cosine(xp: Any, step: Any, of: "WarmupSchedule") -> Any:
    left = of.num_train_steps - of.num_warmup_steps
    done = (step - of.num_warmup_steps) / (left if left > 0 else 1)
    return 0.5 * (1.0 + xp.cos(np.pi * xp.minimum(1.0, xp.maximum(0.0, done))))


def _inverse_sqrt(xp: Any, step: Any, of: "WarmupSchedule") -> Any:
    # Joins the warm-up's end at the peak; without a warm-up it falls from step 1 on.
    first = float(of.num_warmup_steps or 1)
    return xp.sqrt(first / xp.maximum(first, step))


def _wsd(xp: Any, step: Any, of: "WarmupSchedule") -> Any:
    left = (of.num_train_steps - step) / (of.decay_share * of.num_train_steps)
    return xp.minimum(1.0, xp.maximum(0.0, left))


_DECAYS: dict[str, Decay] = {
    "linear": _linear,
    "constant": _constant,
    "cosine": _cosine,
    "inverse_sqrt": _inverse_sqrt,
    "wsd": _wsd,
}


@keras.saving.register_keras_serializable("keras_bert_impl")
class WarmupSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Learning rate with a linear warm-up, as a function of the steps already done.

    During the warm-up it is `peak * step / num_warmup_steps`, so the very first step has rate 0 and
    only fills the optimizer's moments, as in the original. Anything that grows may stand for
    steps: the seconds of a run, say.

    Args:
        peak: the rate that the warm-up ends at.
        num_train_steps: steps of the whole run; `epochs * batches` in `fit`.
        num_warmup_steps: steps of the warm-up.
        decay: what follows it: "linear" (to 0 at `num_train_steps`, as the original does),
            "constant", "cosine", "inverse_sqrt" or "wsd" (the peak, and a line to 0 at the end).
        decay_share: the share of the steps that the decay of "wsd" takes.

    Raises:
        UserError: an unknown `decay`, no steps, or no share of them.

    Example:
        >>> rate = WarmupSchedule(1.0, num_train_steps=100, num_warmup_steps=10)
        >>> [float(rate(step)) for step in (0, 5, 50, 100)]
        [0.0, 0.5, 0.5, 0.0]
        >>> optimizer = keras.optimizers.SGD(rate)
    """

    def __init__(
        self,
        peak: float,
        num_train_steps: float,
        num_warmup_steps: float = 0,
        decay: str = "linear",
        decay_share: float = 0.2,
    ) -> None:
        if decay not in _DECAYS:
            raise UserError(f"schedule={decay!r} is unknown; choose {' or '.join(_DECAYS)}.")
        if not (num_train_steps > 0 and num_warmup_steps >= 0 and 0 < decay_share <= 1):
            values = f"num_train_steps={num_train_steps}, num_warmup_steps={num_warmup_steps}"
            fault = "a run has more than 0 steps, a warm-up 0 or more, and a share is 0 to 1"
            raise UserError(f"{values} and decay_share={decay_share}: {fault}.")
        self.peak, self.decay, self.decay_share = peak, decay, decay_share
        self.num_train_steps, self.num_warmup_steps = num_train_steps, num_warmup_steps

    def __call__(self, step: Any) -> Any:
        """The rate of a step, float32."""
        return self._rate(ops, ops.cast(step, "float32"))

    def at(self, step: float) -> float:
        """The rate of a step, computed in Python's own precision.

        Example:
            >>> WarmupSchedule(1.0, num_train_steps=100, num_warmup_steps=10).at(10)
            0.9
        """
        return float(self._rate(np, np.float64(step)))

    def _rate(self, xp: Any, step: Any) -> Any:
        decay = _DECAYS[self.decay]
        # `where` computes both sides: the warm-up's must be a number without a warm-up, too.
        rising = self.peak * step / (self.num_warmup_steps or 1)
        falling = self.peak * decay(xp, step, self)
        return xp.where(step < self.num_warmup_steps, rising, falling)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make this schedule again."""
        names = ("peak", "num_train_steps", "num_warmup_steps", "decay", "decay_share")
        return {name: getattr(self, name) for name in names}
