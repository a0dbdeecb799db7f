"""What the owner of a run should be told before it starts: mistakes that cost days and no error.

A remark is one sentence: what is so, why it matters, what to do. A new one is one more rule.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keras_bert_impl.training.config import TrainingConfig

if TYPE_CHECKING:  # TensorFlow
    from keras_bert_impl.training.batches import Phase

MOST_EPOCHS = 40.0
"""So often BERT's own pre-training read its text (3.3 billion words in a million steps)."""


@dataclass(frozen=True)
class Epochs:
    """How often a stretch of a run reads its data, in which the text stands `copies` times."""

    steps: int
    batch_size: float  # where a batch grows, its mean
    examples: int
    copies: int = 1

    @property
    def number(self) -> float:
        return self.steps * self.batch_size / self.examples

    @property
    def over_text(self) -> float:
        return self.number * self.copies

    def describe(self) -> str:
        over_text = f" ({_epochs(self.over_text)} over the text)" if self.copies > 1 else ""
        return (
            f"{self.steps:,} steps of {round(self.batch_size, 2):,.10g} examples are "
            f"{_epochs(self.number)} epochs over {self.examples:,} examples{over_text}"
        )


def epochs_of(phases: Sequence["Phase"]) -> list[Epochs]:
    """How often each phase reads its data; their batches are `PretrainingBatches`."""
    read: list[tuple[int, Any]] = [(phase.num_steps, phase.batches) for phase in phases]
    return [Epochs(n, one.batch_size, one.num_examples, one.copies_of_text) for n, one in read]


def remarks(training: TrainingConfig, replicas: int, epochs: Sequence[Epochs] = ()) -> list[str]:
    """The sentences that the owner of a pre-training run on so many devices should read."""
    of_devices = device_remarks(training, replicas)
    return [*_of_warmup(training), *of_devices, *_of_epochs(epochs)]


_OF_ONE = {
    "mirrored": "`distribution_strategy=mirrored` with one device computes as "
    "`distribution_strategy=one_device` does, no faster; take that, or, to try several replicas on "
    "a CPU, add `num_logical_devices=2`.",
    "multi_worker_mirrored": "`distribution_strategy=multi_worker_mirrored` with one device trains "
    "alone; set TF_CONFIG to the same list of workers, with another index, on each of them.",
}


def device_remarks(training: TrainingConfig, replicas: int) -> list[str]:
    """Those about devices: what every training run should say."""
    remark = _OF_ONE.get(training.distribution_strategy) if replicas == 1 else None
    return [remark] if remark else []


def _of_warmup(training: TrainingConfig) -> Iterator[str]:
    warmup, steps = training.num_warmup_steps, training.num_train_steps
    if training.warmup >= training.length:
        highest = training.learning_rate * (steps - 1) / warmup
        yield (
            f"`num_warmup_steps={warmup}` with `num_train_steps={steps}`: the warm-up is not over "
            f"when the run ends, and its learning rate never passes {highest:.2g} (the peak is "
            f"{training.learning_rate:.2g}); give fewer, such as a tenth of the steps "
            f"(`num_warmup_steps={steps // 10}`)."
        )


def _of_epochs(epochs: Sequence[Epochs]) -> Iterator[str]:
    """BERT saw its text so often; far beyond that a model learns its examples by heart."""
    worst = max(epochs, key=lambda one: one.over_text, default=None)
    if worst is not None and worst.over_text > MOST_EPOCHS:
        steps = max(1, int(MOST_EPOCHS / worst.copies * worst.examples / worst.batch_size))
        yield (
            f"{worst.describe()}: BERT's own pre-training read its text about {MOST_EPOCHS:.0f} "
            "times, and a model that reads it much more often learns it by heart; take more text, "
            f"or fewer steps (about {steps:,})."
        )


def _epochs(number: float) -> str:
    form = ",.0f" if number >= 20 else ".1f" if number >= 0.1 else ".2g"
    return f"{number:{form}}"
