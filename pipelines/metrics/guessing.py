"""What guessing reaches: one answer to every example, or as often as each answer occurs."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from keras_bert_impl.training.batches import EXAMPLE_WEIGHTS
from keras_bert_impl.training.learning_curve import Guess

Metric = Callable[[np.ndarray, np.ndarray], float]


def constant_answer(labels: np.ndarray) -> np.ndarray:
    """The answer that is right most often, to all examples.

    Args:
        labels: int [examples] classes, int [examples, labels] of 0 and 1, or float [examples].

    Returns:
        An array of the same shape: the most frequent class, the labels that hold more often than
        not, or the mean.

    Example:
        >>> constant_answer(np.array([2, 0, 2])), constant_answer(np.array([1.0, 2.0]))
        (array([2, 2, 2]), array([1.5, 1.5]))
    """
    if labels.dtype.kind == "f":
        return np.full_like(labels, labels.mean())
    if labels.ndim > 1:
        return np.broadcast_to(labels.mean(axis=0) > 0.5, labels.shape).astype(labels.dtype)
    return np.full_like(labels, np.bincount(labels).argmax())


def constant_scores(metrics: Mapping[str, Metric], labels: np.ndarray) -> dict[str, float]:
    """The figures of the constant answer; a correlation, which is NaN there, counts as 0."""
    answer = constant_answer(labels)
    scores = {name: metric(answer, labels) for name, metric in metrics.items()}
    return {name: 0.0 if math.isnan(score) else score for name, score in scores.items()}


Batch = Mapping[str, np.ndarray]

_BATCHES_TO_COUNT, _TOKENS_TO_COUNT = 64, 100_000


class FrequencyBaseline(NamedTuple):
    """How well the most frequent token, and the tokens' shares, predict the masked tokens."""

    accuracy: float
    loss: float


def count_masked_tokens(batches: Iterable[Batch], vocab_size: int) -> np.ndarray:
    """Counts how often each token stands at a masked position.

    Args:
        batches: each with `masked_lm_ids` and `masked_lm_weights`, [batch, predictions].

    Returns:
        Counts, int64 [vocab_size].
    """
    counts = np.zeros(vocab_size, np.int64)
    for batch in batches:
        real = batch["masked_lm_ids"][batch["masked_lm_weights"] > 0]
        counts += np.bincount(real, minlength=vocab_size)
    return counts


def frequency_baseline(train_counts: np.ndarray, held_out_counts: np.ndarray) -> FrequencyBaseline:
    """Scores frequency guessing on held-out positions (shares with add-one smoothing).

    Args:
        train_counts: token counts of the training data, [vocab_size].
        held_out_counts: token counts at the positions to guess, [vocab_size].
    """
    shares = (train_counts + 1) / (train_counts + 1).sum()
    total = max(int(held_out_counts.sum()), 1)
    accuracy = held_out_counts[train_counts.argmax()] / total
    loss = -(held_out_counts * np.log(shares)).sum() / total
    return FrequencyBaseline(float(accuracy), float(loss))


class AnswerCounts(NamedTuple):
    """How often each right answer occurs in a set of examples."""

    tokens: np.ndarray
    labels: np.ndarray

    @property
    def larger_label(self) -> float:
        """The share of the more frequent label."""
        return float(self.labels.max() / max(self.labels.sum(), 1))


def count_answers(batches: Iterable[Batch], vocab_size: int) -> AnswerCounts:
    """Counts the right answers of an evaluation set; rows that only fill a batch count nowhere."""
    labels = np.zeros(2, np.int64)

    def real_rows() -> Iterator[Batch]:
        for batch in batches:
            real = batch[EXAMPLE_WEIGHTS] > 0
            labels[:] += np.bincount(batch["next_sentence_labels"][real, 0], minlength=2)
            yield {name: batch[name][real] for name in ("masked_lm_ids", "masked_lm_weights")}

    return AnswerCounts(count_masked_tokens(real_rows(), vocab_size), labels)


def count_sample(batches: Iterable[Batch], vocab_size: int) -> np.ndarray:
    """Counts how often each token is masked in training: int64 [vocab_size].

    Only so many batches are read as are needed to know how often the frequent tokens occur.

    Example:
        >>> batch = {"masked_lm_ids": np.array([[1, 2]]), "masked_lm_weights": np.ones([1, 2])}
        >>> count_sample([batch] * 5, 3).tolist()
        [0, 5, 5]
    """
    counts = np.zeros(vocab_size, np.int64)
    for batch in itertools.islice(batches, _BATCHES_TO_COUNT):
        counts += count_masked_tokens([batch], vocab_size)
        if counts.sum() >= _TOKENS_TO_COUNT:
            break
    return counts


def pretraining_guesses(train_tokens: np.ndarray, held_out: AnswerCounts) -> dict[str, Guess]:
    """Gives what guessing reaches on held-out examples, by the figures' names.

    Tokens are guessed as often as they are masked in the training data; next sentences by the
    held-out examples' own shares, which no constant answer beats.

    Args:
        train_tokens: how often each token is masked in the training data, [vocab_size].

    Example:
        >>> counts = AnswerCounts(np.array([3, 1]), np.array([2, 6]))
        >>> guesses = pretraining_guesses(np.array([9, 3]), counts)
        >>> guesses["masked_lm_accuracy"].value, guesses["next_sentence_accuracy"].value
        (0.75, 0.75)
    """
    tokens = frequency_baseline(train_tokens, held_out.tokens)
    shares = held_out.labels / max(held_out.labels.sum(), 1)
    entropy = -float(sum(share * np.log(share) for share in shares if share > 0))
    return {
        "masked_lm_loss": Guess("guessing by word frequency", tokens.loss),
        "masked_lm_accuracy": Guess("guessing the most frequent token", tokens.accuracy),
        "next_sentence_loss": Guess("guessing by the answers' frequency", entropy),
        "next_sentence_accuracy": Guess("always the more frequent answer", held_out.larger_label),
    }
