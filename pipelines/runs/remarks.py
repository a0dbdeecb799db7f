"""What the owner of a run should be told before it starts: mistakes that cost days and no error.

A remark is one sentence: what is so, why it matters, what to do. A new one is one more rule.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keras_bert_impl.training.config import TrainingConfig

if TYPE_CHECKING:  # TensorFlow
    from keras_bert_impl.training.batches import Phase

MOST_EPOCHS = 40.0
"""So often BERT's own pre-training read its text (3.3 billion words in a million steps)."""

_HIGHEST_RATE = 5e-3  # BERT is trained with 1e-4 and tiny models with 1e-3 at most


@dataclass(frozen=True)
class Epochs:
    """How often a stretch of a run reads its data, in which the text stands `copies` times."""

    steps: int
    batch_size: int
    examples: int
    copies: int = 1

    @property
    def number(self) -> float:
        """Epochs over the examples."""
        return self.steps * self.batch_size / self.examples

    @property
    def over_text(self) -> float:
        """How often the text itself is read."""
        return self.number * self.copies

    def describe(self) -> str:
        """One line for the log.

        Example:
            >>> Epochs(steps=1000, batch_size=32, examples=4000, copies=10).describe()
            '1,000 steps of 32 examples are 8.0 epochs over 4,000 examples (80 over the text)'
        """
        line = (
            f"{self.steps:,} steps of {self.batch_size:,} examples are {_epochs(self.number)} "
            f"epochs over {self.examples:,} examples"
        )
        return line + (f" ({_epochs(self.over_text)} over the text)" if self.copies > 1 else "")


def epochs_of(phases: Sequence["Phase"]) -> list[Epochs]:
    """How often each phase reads its data; their batches are `PretrainingBatches`."""
    found = []
    for phase in phases:
        batches: Any = phase.batches
        size = (batches.batch_size, batches.num_examples, batches.copies_of_text)
        found.append(Epochs(phase.num_steps, *size))
    return found


def remarks(
    training: TrainingConfig,
    replicas: int = 1,
    epochs: Sequence[Epochs] = (),
    has_cluster: bool | None = None,
) -> list[str]:
    """The sentences that the owner of a pre-training run should read.

    Args:
        replicas: over how many devices a batch is split.
        epochs: by phase; empty where nobody knows.
        has_cluster: whether there are other workers; by default as TF_CONFIG says.

    Example:
        >>> training = TrainingConfig(num_train_steps=200, num_warmup_steps=20)
        >>> remarks(training)
        []
    """
    of_devices = device_remarks(training, replicas, has_cluster)
    return [*_of_warmup(training), *of_devices, *_of_epochs(epochs)]


def device_remarks(
    training: TrainingConfig, replicas: int, has_cluster: bool | None = None
) -> list[str]:
    """Those about devices and the learning rate: what every training run should say."""
    strategy, rate, found = training.distribution_strategy, training.learning_rate, list[str]()
    if strategy == "mirrored" and replicas == 1:
        found.append(
            "`distribution_strategy=mirrored` with one device computes as `distribution_strategy="
            "one_device` does, no faster; take that, or, to try several replicas on a CPU, add "
            "`num_logical_devices=2`."
        )
    has_cluster = names_cluster() if has_cluster is None else has_cluster
    if strategy == "multi_worker_mirrored" and not has_cluster:
        found.append(
            "`distribution_strategy=multi_worker_mirrored` without TF_CONFIG: this process knows "
            "of no other worker and trains alone; set TF_CONFIG to the same list of workers, with "
            "another index, on each of them."
        )
    if training.optimizer == "adamw" and rate > _HIGHEST_RATE:
        found.append(
            f"`learning_rate={rate:g}` is far above what such models learn with (1e-4 to 1e-3 from "
            "random weights, 1e-5 to 1e-4 in fine-tuning): the loss will probably grow."
        )
    return found


def _of_warmup(training: TrainingConfig) -> Iterator[str]:
    warmup, steps = training.num_warmup_steps, training.num_train_steps
    if warmup >= steps:
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


def names_cluster(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether TF_CONFIG says with whom this process trains.

    Example:
        >>> names_cluster({}), names_cluster({"TF_CONFIG": '{"cluster": {"worker": ["a:1"]}}'})
        (False, True)
    """
    return environment.get("TF_CONFIG", "").strip() not in ("", "{}")


def _epochs(number: float) -> str:
    return (
        f"{number:,.0f}" if number >= 20 else f"{number:.1f}" if number >= 0.1 else f"{number:.2g}"
    )
