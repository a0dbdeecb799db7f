"""Noticing that a model only learns how often words occur."""

from collections import deque
from collections.abc import Callable

_LINES, _MARGIN = 20, 0.05


class Plateau:
    """Points out, once, that the masked-LM loss is stuck where guessing by frequency is.

    Every run passes this plateau; one that is still there long after the warm-up does not learn
    from context, usually because the learning rate is too high or the masks are wrong.

    Args:
        frequency_loss: what guessing by frequency reaches, in nats; None watches nothing.
        num_warmup_steps: the run's warm-up.
        report: is told.

    Example:
        >>> plateau = Plateau(6.0, num_warmup_steps=10, report=print)
        >>> for step in range(1000, 5000, 200):
        ...     plateau.see(step, 5.99)
        Step 4800: the masked-LM loss (5.99) is still what guessing by word frequency reaches
        (6.00); try a smaller --learning_rate or a longer --num_warmup_steps, and see that the
        shards' masking is right.
    """

    def __init__(
        self,
        frequency_loss: float | None,
        num_warmup_steps: int,
        report: Callable[[str], None],
    ) -> None:
        self._frequency_loss, self._report = frequency_loss, report
        self._from_step = max(1000, 2 * num_warmup_steps)
        self._recent: deque[float] = deque(maxlen=_LINES)

    def see(self, step: int, masked_lm_loss: float | None) -> None:
        """Looks at one logged loss."""
        if self._frequency_loss is None or masked_lm_loss is None or step < self._from_step:
            return
        self._recent.append(masked_lm_loss)
        mean = sum(self._recent) / len(self._recent)
        if len(self._recent) == _LINES and mean > self._frequency_loss - _MARGIN:
            self._report(
                f"Step {step}: the masked-LM loss ({mean:.2f}) is still what guessing by word "
                f"frequency reaches ({self._frequency_loss:.2f}); try a smaller --learning_rate "
                "or a longer --num_warmup_steps, and see that the shards' masking is right."
            )
            self._frequency_loss = None  # said once
