"""The options of many runs of one command: which seeds, which settings."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from keras_bert_impl.options import FREE, check_options, option

# BERT's paper, appendix A.3: what was searched for every task of GLUE, the best chosen on dev.
_PAPER = ((16, 32), (5e-5, 3e-5, 2e-5), (2.0, 3.0, 4.0))
SEARCHES = {"paper": _PAPER}


class Setting(NamedTuple):
    """What a search varies.

    Attributes:
        train_batch_size: examples of a step.
        learning_rate: the peak.
        num_train_epochs: passes over the training split.
    """

    train_batch_size: int
    learning_rate: float
    num_train_epochs: float

    @property
    def folder(self) -> str:
        """The name of its folder.

        Example:
            >>> Setting(16, 5e-05, 3.0).folder
            'batch-16_rate-5e-5_epochs-3'
        """
        rate = f"{self.learning_rate:g}".replace("e-0", "e-")
        return f"batch-{self.train_batch_size}_rate-{rate}_epochs-{self.num_train_epochs:g}"


@dataclass(frozen=True, kw_only=True)
class ManyRunsConfig:
    """Which runs one command stands for; the defaults are one run.

    Example:
        >>> runs = ManyRunsConfig(num_seeds=3, search="paper")
        >>> list(runs.seeds(100)), len(runs.settings())
        ([100, 101, 102], 18)
    """

    num_seeds: int = option(
        1,
        "Train so many models, one after the other, with as many seeds, each in its folder "
        "seed-NUMBER of the run's folder, and write mean, deviation, median, minimum, the best on "
        "the labelled split and how many failed. The first seed is the one that is given.",
        at_least=1,
        resume=FREE,
    )
    search: str | None = option(
        None,
        "Try settings and choose the best on the labelled split: paper tries what BERT's paper did "
        "(batches of 16 and 32, learning rates 5e-5, 3e-5 and 2e-5, 2 to 4 epochs), 18 runs for "
        "each seed.",
        choices=tuple(SEARCHES),
        resume=FREE,
    )

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def are_many(self) -> bool:
        """Whether there is more than one run."""
        return self.num_seeds > 1 or self.search is not None

    def seeds(self, first: int) -> Iterator[int]:
        """The seeds: `first` and the numbers after it (after the largest comes 0)."""
        return ((first + number) % 2**32 for number in range(self.num_seeds))

    def settings(self) -> list[Setting]:
        """What is tried; nothing where the command's own setting is the only one."""
        return (
            []
            if self.search is None
            else [Setting(*one) for one in product(*SEARCHES[self.search])]
        )
