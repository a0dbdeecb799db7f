"""Learning rates as plain functions of the step."""

import math
from collections.abc import Callable

from keras_bert_impl.errors import UserError

Decay = Callable[[int, int, int], float]


def _linear(step: int, total: int, _warmup: int) -> float:
    # As the original: the line starts at step 0, so the warm-up cuts its beginning off.
    return max(0.0, 1.0 - step / total)


def _constant(_step: int, _total: int, _warmup: int) -> float:
    return 1.0


def _cosine(step: int, total: int, warmup: int) -> float:
    done = (step - warmup) / max(1, total - warmup)
    return 0.5 * (1.0 + math.cos(math.pi * min(1.0, max(0.0, done))))


def _inverse_sqrt(step: int, _total: int, warmup: int) -> float:
    return math.sqrt(max(1, warmup) / max(1, step, warmup))


_DECAYS: dict[str, Decay] = {
    "linear": _linear,
    "constant": _constant,
    "cosine": _cosine,
    "inverse_sqrt": _inverse_sqrt,
}


def learning_rate_schedule(
    name: str, peak: float, num_train_steps: int, num_warmup_steps: int
) -> Callable[[int], float]:
    """Gives the learning rate as a function of the number of steps already done.

    During warm-up it is `peak * step / num_warmup_steps`, so the very first step has rate 0 and
    only fills the optimizer's moments, as in the original.

    Args:
        name: "linear" (to 0 at `num_train_steps`, the original's), "constant", "cosine" or
            "inverse_sqrt".
        peak: the rate that the warm-up ends at.
        num_train_steps: steps of the whole run.
        num_warmup_steps: steps of the warm-up.

    Raises:
        UserError: an unknown name.

    Example:
        >>> rate = learning_rate_schedule("linear", 1.0, 100, 10)
        >>> rate(0), rate(5), rate(10), rate(50), rate(100)
        (0.0, 0.5, 0.9, 0.5, 0.0)
    """
    if name not in _DECAYS:
        raise UserError(f"--schedule={name} is unknown; choose {' or '.join(_DECAYS)}.")
    decay = _DECAYS[name]

    def rate(step: int) -> float:
        if step < num_warmup_steps:
            return peak * step / num_warmup_steps
        return peak * decay(step, num_train_steps, num_warmup_steps)

    return rate
