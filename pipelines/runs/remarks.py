"""What the owner of a run should be told before it starts: mistakes that cost days and no error.

A remark is one sentence: what is so, why it matters, what to do. A new one is one more rule.
"""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from keras_bert_impl.training.config import TrainingConfig

MOST_EPOCHS = 40.0
"""So often BERT's own pre-training read its text (3.3 billion words in a million steps)."""


@dataclass(frozen=True)
class Epochs:
    """How often a stretch of a run reads its data.

    Attributes:
        steps: optimizer steps.
        batch_size: examples of a step.
        examples: in the data.
        copies: how often the text stands in them, each time masked in another way.
    """

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


def remarks(facts: RunFacts) -> list[str]:
    """The sentences that the owner of a pre-training run should read.

    Example:
        >>> training = TrainingConfig(num_train_steps=200, num_warmup_steps=20)
        >>> remarks(RunFacts(training))
        []
    """
    return _said((_warmup, _learning_rate, *_OF_DEVICES, _epochs_over_text), facts)


def device_remarks(facts: RunFacts) -> list[str]:
    """Those about devices and the learning rate: what every training run should say."""
    return _said((*_OF_DEVICES, _learning_rate), facts)


def _said(rules: Sequence[Callable[[RunFacts], str | None]], facts: RunFacts) -> list[str]:
    return [sentence for rule in rules if (sentence := rule(facts))]


def _warmup(facts: RunFacts) -> str | None:
    training = facts.training
    warmup, steps = training.num_warmup_steps, training.num_train_steps
    if warmup < steps:
        return None
    highest = training.learning_rate * (steps - 1) / warmup
    return (
        f"`num_warmup_steps={warmup}` with `num_train_steps={steps}`: the warm-up is not over when "
        f"the run ends, and its learning rate never passes {highest:.2g} (the peak is "
        f"{training.learning_rate:.2g}); give fewer, such as a tenth of the steps "
        f"(`num_warmup_steps={steps // 10}`)."
    )


_HIGHEST_RATE = 5e-3  # BERT is trained with 1e-4 and tiny models with 1e-3 at most


def _learning_rate(facts: RunFacts) -> str | None:
    training = facts.training
    if training.optimizer != "adamw" or training.learning_rate <= _HIGHEST_RATE:
        return None
    return (
        f"`learning_rate={training.learning_rate:g}` is far above what such models learn with "
        "(1e-4 to 1e-3 from random weights, 1e-5 to 1e-4 in fine-tuning): the loss will probably "
        "grow."
    )


def _mirrored_alone(facts: RunFacts) -> str | None:
    if facts.training.distribution_strategy != "mirrored" or facts.replicas > 1:
        return None
    return (
        "`distribution_strategy=mirrored` with one device computes as `distribution_strategy="
        "one_device` does, no faster; take that, or, to try several replicas on a CPU, add "
        "`num_logical_devices=2`."
    )


def _worker_alone(facts: RunFacts) -> str | None:
    if facts.training.distribution_strategy != "multi_worker_mirrored" or facts.has_cluster:
        return None
    return (
        "`distribution_strategy=multi_worker_mirrored` without TF_CONFIG: this process knows of no "
        "other worker and trains alone; set TF_CONFIG to the same list of workers, with another "
        "index, on each of them."
    )


def _unused_gpus(facts: RunFacts) -> str | None:
    if not facts.unused_gpus:
        return None
    return (
        f"{facts.unused_gpus} more GPU{'s' * (facts.unused_gpus > 1)} of this machine "
        f"stay{'s' * (facts.unused_gpus == 1)} idle; `distribution_strategy=mirrored` uses all of "
        "them."
    )


def _hidden_gpu(facts: RunFacts) -> str | None:
    if facts.hidden_gpu is None:
        return None
    return (
        f"this machine has an NVIDIA GPU ({facts.hidden_gpu}), but TensorFlow does not see it and "
        "the CPU computes; pip install 'tensorflow[and-cuda]' brings what is missing (a container "
        "must be started with its GPUs), and CUDA_VISIBLE_DEVICES=-1 says that the CPU is meant."
    )


def _epochs_over_text(facts: RunFacts) -> str | None:
    """BERT saw its text so often; far beyond that a model learns its examples by heart."""
    worst = max(facts.epochs, key=lambda one: one.over_text, default=None)
    if worst is None or worst.over_text <= MOST_EPOCHS:
        return None
    steps = max(1, int(MOST_EPOCHS / worst.copies * worst.examples / worst.batch_size))
    return (
        f"{worst.describe()}: BERT's own pre-training read its text about {MOST_EPOCHS:.0f} times, "
        "and a model that reads it much more often learns it by heart; take more text, or fewer "
        f"steps (about {steps:,})."
    )


_OF_DEVICES = (_mirrored_alone, _worker_alone, _unused_gpus, _hidden_gpu)


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

    Args:
        root: the folder of the machine's files.
        environment: the process's variables; one that hides GPUs on purpose hides them here, too.
        search_path: where programs are looked for; by default those of the process.
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
