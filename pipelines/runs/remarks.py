"""What the owner of a run should be told before it starts: mistakes that cost days and no error.

A remark is one sentence: what is so, why it matters, what to do. A new one is one more rule.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_bert_impl.training.config import TrainingConfig
from pipelines.records.check import described_words, find_shards

if TYPE_CHECKING:  # TensorFlow
    from keras_bert_impl.training.batches import Phase
    from keras_bert_impl.training.strategy import Devices

RECORDS_CHECKED = 2**18
"""How many records of a phase are looked at before a run: a few seconds' worth."""

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


def check_records(phases: Sequence["Phase"], report: Callable[[str], None]) -> None:
    """Looks at the records of every phase, before anything is computed from them.

    Up to `RECORDS_CHECKED` of a phase: all of most sets, else so many spread evenly. Those left
    out are checked with their batch when it is read.
    """
    for number, phase in enumerate(phases, start=1):
        batches: Any = phase.batches
        checked, everything = batches.check(RECORDS_CHECKED), batches.num_examples
        which = f"all {checked:,}" if checked == everything else f"{checked:,} of {everything:,}"
        rest = "" if checked == everything else "; the others are checked when they are read"
        report(f"Phase {number}: looked at {which} records{rest}.")


def check_words(input_files: Sequence[str], warn: Callable[[str], None]) -> None:
    """Tells of shards of whose words more than 5 % are [UNK]."""
    words = described_words(find_shards(input_files))
    if words is not None and words.is_large:
        warn(
            f"{', '.join(input_files)}: {words} are [UNK], which the model can learn nothing from: "
            "the vocabulary does not fit the text. create_pretraining_data names the likely reason."
        )


@dataclass(frozen=True)
class RunFacts:
    """What is known of a run before it starts.

    Attributes:
        training: how it trains.
        replicas: over how many devices a batch is split.
        unused_gpus: how many GPUs TensorFlow sees and the run does not use.
        hidden_gpu: where the machine shows a GPU that TensorFlow does not see; None without one.
        epochs: by phase; empty where nobody knows.
        has_cluster: whether TF_CONFIG names the workers, or somebody knows that it will.
    """

    training: TrainingConfig
    replicas: int = 1
    unused_gpus: int = 0
    hidden_gpu: str | None = None
    epochs: Sequence[Epochs] = ()
    has_cluster: bool = False

    @classmethod
    def of(
        cls, training: TrainingConfig, devices: "Devices", epochs: Sequence[Epochs] = ()
    ) -> "RunFacts":
        """The facts once the devices are there."""
        # A CPU that is split is meant, whatever GPU is there.
        by_chance = devices.on_cpu and training.num_logical_devices == 1
        hidden = find_hidden_gpu() if by_chance else None
        unused = devices.unused_gpus
        return cls(training, devices.replicas, unused, hidden, epochs, names_cluster())


def remarks(facts: RunFacts) -> list[str]:
    """The sentences that the owner of a pre-training run should read.

    Example:
        >>> training = TrainingConfig(num_train_steps=200, num_warmup_steps=20)
        >>> remarks(RunFacts(training))
        []
    """
    return [*_of_warmup(facts), *device_remarks(facts), *_of_epochs(facts)]


def device_remarks(facts: RunFacts) -> list[str]:
    """Those about devices and the learning rate: what every training run should say."""
    training, found = facts.training, list[str]()
    strategy, rate = training.distribution_strategy, training.learning_rate
    if strategy == "mirrored" and facts.replicas == 1:
        found.append(
            "`distribution_strategy=mirrored` with one device computes as `distribution_strategy="
            "one_device` does, no faster; take that, or, to try several replicas on a CPU, add "
            "`num_logical_devices=2`."
        )
    if strategy == "multi_worker_mirrored" and not facts.has_cluster:
        found.append(
            "`distribution_strategy=multi_worker_mirrored` without TF_CONFIG: this process knows "
            "of no other worker and trains alone; set TF_CONFIG to the same list of workers, with "
            "another index, on each of them."
        )
    if facts.unused_gpus:
        found.append(
            f"{facts.unused_gpus} more GPU{'s' * (facts.unused_gpus > 1)} of this machine "
            f"stay{'s' * (facts.unused_gpus == 1)} idle; `distribution_strategy=mirrored` uses all "
            "of them."
        )
    if facts.hidden_gpu:
        found.append(
            f"this machine has an NVIDIA GPU ({facts.hidden_gpu}), but TensorFlow does not see it "
            "and the CPU computes; pip install 'tensorflow[and-cuda]' brings what is missing (a "
            "container must be started with its GPUs), and CUDA_VISIBLE_DEVICES=-1 says that the "
            "CPU is meant."
        )
    if training.optimizer == "adamw" and rate > _HIGHEST_RATE:
        found.append(
            f"`learning_rate={rate:g}` is far above what such models learn with (1e-4 to 1e-3 from "
            "random weights, 1e-5 to 1e-4 in fine-tuning): the loss will probably grow."
        )
    return found


def _of_warmup(facts: RunFacts) -> Iterator[str]:
    training = facts.training
    warmup, steps = training.num_warmup_steps, training.num_train_steps
    if warmup >= steps:
        highest = training.learning_rate * (steps - 1) / warmup
        yield (
            f"`num_warmup_steps={warmup}` with `num_train_steps={steps}`: the warm-up is not over "
            f"when the run ends, and its learning rate never passes {highest:.2g} (the peak is "
            f"{training.learning_rate:.2g}); give fewer, such as a tenth of the steps "
            f"(`num_warmup_steps={steps // 10}`)."
        )


def _of_epochs(facts: RunFacts) -> Iterator[str]:
    """BERT saw its text so often; far beyond that a model learns its examples by heart."""
    worst = max(facts.epochs, key=lambda one: one.over_text, default=None)
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


def find_hidden_gpu(
    root: str = "/", environment: Mapping[str, str] = os.environ, search_path: str | None = None
) -> str | None:
    """Where the machine shows an NVIDIA GPU, for a process in which TensorFlow sees none.

    `CUDA_VISIBLE_DEVICES` hides one on purpose. Programs are looked for on `search_path`, by
    default that of the process.
    """
    if environment.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return None
    for pattern in ("dev/nvidia[0-9]*", "proc/driver/nvidia/gpus/*"):
        if found := sorted(Path(root).glob(pattern)):
            return f"/{found[0].relative_to(root).as_posix()}"
    # Under Windows' Linux there is neither. The program alone proves nothing: it may be installed
    # on machines without a GPU.
    program = shutil.which("nvidia-smi", path=search_path)
    return program if program and Path(root, "dev/dxg").exists() else None


def _epochs(number: float) -> str:
    return (
        f"{number:,.0f}" if number >= 20 else f"{number:.1f}" if number >= 0.1 else f"{number:.2g}"
    )
