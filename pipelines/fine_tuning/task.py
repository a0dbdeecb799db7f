"""The contract of a task: from its files to its figures, and to the model that serves it.

A task's data flows one way, and the job that fine-tunes (`pipelines.fine_tuning.run`) calls one
method after the other:

```
examples(split)            → examples: identifier, the user's texts, the label
texts(example)             → the texts of an example
rows(examples, …)          → one or many rows an example: what the model reads, and what undoes it
head(config)               → a model, and what it is trained for
answers(examples, rows, …) → one answer an example: windows joined, choices compared
score(answered)            → the official figures
write(folder, …, answered) → the official files
served(opened)             → strings → answers, inside a graph
```

Rows and outputs are arrays in memory (`pipelines.fine_tuning.row_set`); `examples` and `answered`
are read again instead of kept.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from numpy.typing import NDArray

from keras_bert_impl.training.learning_curve import CurveStyle, Guess
from pipelines.records.rows import Rows

if TYPE_CHECKING:  # only for the types: a task must be listable without loading TensorFlow
    import keras
    import numpy as np

    from keras_bert_impl.checkpoints.model_source import ModelSource
    from keras_bert_impl.checkpoints.sentence_modules import SentenceSettings
    from keras_bert_impl.config import BertConfig
    from keras_bert_impl.serving.forms import Form, KnownModel
    from keras_bert_impl.serving.opened_model import OpenedModel
    from keras_bert_impl.serving.signatures import ServedModel
    from keras_bert_impl.tokenization.tokenizer import LineTokenizer
    from keras_bert_impl.training.batches import BatchSource
    from keras_bert_impl.training.objectives import Objective
    from pipelines.fine_tuning.row_batches import LengthRule
    from pipelines.fine_tuning.row_set import RowOutputs, RowSet
    from pipelines.metrics.guessing import Guessing

Example = TypeVar("Example")
Answer = TypeVar("Answer")

Answered = Iterable[tuple[Example, Answer]]
"""The examples of a split with their answers, in the file's order; made anew at each reading."""


NO_LABELS = ("of_no_row",)
"""The labels of a head whose rows get no loss when they are scored: figures decide what is best."""


@dataclass(frozen=True)
class Head:
    """A model for a task, and what it is trained for.

    The model has the BERT encoder as its `encoder`, takes the features that the objective names and
    gives a dict of outputs. Rows that have all of `labels` get a loss when they are scored.
    `token_outputs` have a number (or several) for each position: [batch, length, ...].
    """

    model: "keras.Model"
    objective: "Objective"
    labels: tuple[str, ...] = ("label_ids",)
    token_outputs: tuple[str, ...] = ()


class Facts(NamedTuple):
    """What is counted of an example: its labels, its line in a file, what else is odd about it."""

    classes: Sequence[str] | None = None
    line: int = 0
    note: str = ""
    compared: bool = True  # else it may be there twice, or in several splits


@dataclass(frozen=True)
class TrainingRows:
    """What batches are made of: the rows of the training split, and how a run trains with them."""

    rows: "RowSet"
    batch_size: int
    seed: int
    length_rule: "LengthRule"
    replicas: int
    folder: Path  # of the run
    identity: str  # tells these rows, and the model that training starts from, from others
    outputs: "Callable[[], RowOutputs]"  # of that model


class TaskDefaults(Protocol):
    """What a task may say besides, and what holds where it says nothing; tasks inherit it."""

    def facts(self, example: Any) -> Facts:
        """What is counted of an example before a run, besides its texts."""
        del example
        return Facts()

    joins: bool = False
    """Whether the outputs of an example's rows are joined before it is answered: `joined`."""

    evaluates_start: bool = False
    """Whether the model that training starts from has figures, beside which the run's stand."""

    def training_rows(self, examples: Any, tokenizer: Any, max_seq_length: int) -> Rows:
        """The rows to train on, where they are others than those that are answered."""
        return self.rows(examples, tokenizer, max_seq_length)

    @abstractmethod
    def rows(self, examples: Any, tokenizer: Any, max_seq_length: int) -> Rows:
        """See `Task.rows`; each task has its own."""

    def batches(self, training: TrainingRows) -> "BatchSource | None":
        """The training batches; None of a task whose batches are rows in any order."""
        del training
        return None

    @property
    def max_seq_length(self) -> int | None:
        """The length of rows where a run says none, if the task knows one."""
        return None

    def identity(self, split: str) -> str:
        """What figures of a split depend on besides its rows, for a line of text."""
        del split
        return ""

    def num_training_rows(self, rows: "RowSet") -> int:
        """How many rows an epoch has."""
        return len(rows)

    def restored(self, model: Any, start: "ModelSource") -> None:
        """Gives the model what the folder of its weights holds elsewhere."""
        del model, start

    def sentence(self, max_seq_length: int) -> "SentenceSettings | None":
        """How the trained model makes a text one vector, if that is what it is for."""
        del max_seq_length
        return None

    def peers(self, split: str) -> Mapping[str, Guess]:
        """What something else than a model reaches on a labelled split, beside the figures."""
        del split
        return {}

    @property
    def answer_options(self) -> Mapping[str, Any]:
        """The options by which answers are chosen, as JSON values; they change no rows.

        The model directory has those of the training, and what `calibrated` changes of them, so
        that `served` answers as the files do.
        """
        return {}

    def calibrated(self, scores: Mapping[str, float]) -> Any:
        """Gives the task with the options that the scores of its main split recommend."""
        del scores
        return self

    def joined(self, rows: Rows, outputs: Mapping[str, NDArray]) -> Mapping[str, NDArray]:
        """Gives the outputs of each example: [examples, ...]; arguments as of `Task.answers`."""
        del rows
        return outputs

    @property
    def compared_figures(self) -> Sequence[str]:
        """The figures of `score` that say which run is better, the first most; () are all.

        The first makes the best checkpoint where the rows that are scored cannot give a loss.
        """
        return ()

    def score(self, answered: Any) -> Mapping[str, Any]:
        """See `Task.score`; each task has its own."""

    def drawn_scores(
        self, answered: Sequence[tuple[Any, Any]], draws: "np.random.Generator"
    ) -> "Iterator[Mapping[str, Any]]":
        """The scores of as many examples drawn with replacement, again and again."""
        while True:
            numbers = draws.integers(len(answered), size=len(answered))
            yield self.score([answered[number] for number in numbers])

    def guessing(self, split: str) -> "Guessing | None":
        """The best single answer to all examples of a labelled split: a run must be better."""
        del split
        return None

    @property
    def curve_style(self) -> CurveStyle:
        """Which figures are drawn, and in which unit they are."""
        return CurveStyle(self.compared_figures)

    def illustrate(self, folder: Path, split: str, answered: Answered[Any, Any]) -> Sequence[Path]:
        """Writes tables and pictures about the answers to a labelled split; gives their paths."""
        del folder, split, answered
        return ()


class Task(TaskDefaults, Protocol[Example, Answer]):
    """The contract between a task and the jobs that fine-tune for it and serve it.

    A task knows its files, its options and its labels; nothing of batches, devices, training or
    result folders. `tests/support/toy_task.py` is one in under a hundred lines.
    """

    @property
    def name(self) -> str:
        """The name that people use."""

    @property
    def train_split(self) -> str:
        """The split to train on."""

    @property
    def evaluation_splits(self) -> Sequence[str]:
        """The labelled splits that are scored, the main one first."""

    @property
    def test_splits(self) -> Sequence[str]:
        """The splits that are answered, the main one first; they may be labelled ones as well."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The options that change its rows, as JSON values; kept for a resumed run and `served`."""

    def files(self, split: str) -> Sequence[Path]:
        """The files that a split's examples come from."""

    def examples(self, split: str) -> Iterable[Example]:
        """Reads a split from its beginning, one example at a time; the same ones every time."""

    def texts(self, example: Example) -> Iterable[str]:
        """Gives the texts of an example that are tokenized: their words must be known."""

    def rows(
        self, examples: Sequence[Example], tokenizer: "LineTokenizer", max_seq_length: int
    ) -> Rows:
        """Makes what the model reads for some examples (a few thousand: tokenize them together).

        One row or more for each, in their order. Rows hold the model's inputs, the labels where
        there are any, and whatever `answers` needs to undo them (offsets of words, the number of a
        window): a feature that the model does not name is kept.
        """

    def configure(self, config: "BertConfig") -> "BertConfig":
        """Gives the configuration with what others should know of the task: its labels' names."""

    def head(self, config: "BertConfig", dtype: Any = None) -> Head:
        """Builds the model by a configuration from `configure` and a Keras dtype policy."""

    def answers(
        self, examples: Sequence[Example], rows: Rows, outputs: Mapping[str, NDArray]
    ) -> Sequence[Answer]:
        """Makes one answer for each of some examples of all their rows.

        Outputs are [rows, ...]; token outputs flat, of the real tokens only: [tokens, ...].
        """

    def score(self, answered: Answered[Example, Answer]) -> Mapping[str, float]:
        """Gives the official metrics of the answers to a labelled split."""

    def write(
        self, folder: Path, split: str, answered: Answered[Example, Answer]
    ) -> Sequence[Path]:
        """Writes the answers to a test split; gives the files' paths."""

    def served(self, opened: "OpenedModel", max_seq_length: int | None) -> "ServedModel":
        """Gives the signatures by which a trained model answers strings, inside a graph.

        `max_seq_length` is as in training where it is None.
        """


class Asked(Task[Example, Answer], Protocol[Example, Answer]):
    """A task whose models answer texts by forms of its own, see `keras_bert_impl.serving.forms`."""

    def forms(self, model: "KnownModel", max_seq_length: int | None) -> "Sequence[Form]":
        """Gives what a trained model is asked, without TensorFlow; the main form first."""


def figure_prefixes(splits: Sequence[str]) -> dict[str, str]:
    """Gives the prefix of each split's figures in `eval_results.txt`, the main split's first.

    Example:
        >>> figure_prefixes(["dev", "dev_mismatched", "test"])
        {'dev': 'eval_', 'dev_mismatched': 'eval_mismatched_', 'test': 'eval_test_'}
    """
    others = {split: f"eval_{split.removeprefix('dev_')}_" for split in splits[1:]}
    return dict.fromkeys(splits[:1], "eval_") | others
