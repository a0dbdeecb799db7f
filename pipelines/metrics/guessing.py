"""What guessing reaches: one answer to every example, or tokens as often as they occur."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from keras_bert_impl.training.batches import EXAMPLE_WEIGHTS
from keras_bert_impl.training.learning_curve import Guess


class Guessing(NamedTuple):
    """The same answer to every example of a labelled split, how it is guessed, perhaps its loss."""

    words: str
    answered: Iterable[tuple[Any, Any]]
    loss: float | None = None


def guesses_of(task: Any, split: str) -> dict[str, Guess]:
    """What guessing reaches on a labelled split: the task's own figures of one answer to all.

    A figure that is not defined there, as a correlation with what never varies, has no guess.
    """
    guessing: Guessing | None = task.guessing(split)
    if guessing is None:
        return {}
    scores = task.score(guessing.answered)
    drawn = task.curve_style.scores or scores
    found = {name: scores[name] for name in drawn if name in scores}
    found |= {} if guessing.loss is None else {"loss": guessing.loss}
    return {name: Guess(guessing.words, x) for name, x in found.items() if math.isfinite(x)}


def constant_answer(labels: np.ndarray) -> Any:
    """The best answer to every example: the most frequent class, the usual labels, or the mean.

    Labels are int [examples], int [examples, labels] of 0 and 1, or float [examples].

    Example:
        >>> constant_answer(np.array([2, 0, 2])), constant_answer(np.array([1.0, 2.0]))
        (2, 1.5)
        >>> constant_answer(np.array([[1, 0], [1, 0], [0, 1]])).tolist()
        [1, 0]
    """
    if labels.dtype.kind == "f":
        return float(labels.mean(dtype=np.float64))
    if labels.ndim > 1:
        return (labels.mean(axis=0) > 0.5).astype(labels.dtype)
    return int(np.bincount(labels).argmax())


Batch = Mapping[str, np.ndarray]
ENOUGH_TOKENS = 100_000
"""So many masked tokens show how often the frequent ones occur."""


class AnswerCounts(NamedTuple):
    """How often each right answer occurs in a set of examples: tokens, and labels of pairs."""

    tokens: np.ndarray
    labels: np.ndarray


def count_masked_tokens(
    batches: Iterable[Batch], vocab_size: int, enough: float = math.inf
) -> np.ndarray:
    """Counts how often each token is masked, int64 [vocab_size], until there are `enough`."""
    counts = np.zeros(vocab_size, np.int64)
    for batch in batches:
        real = batch["masked_lm_ids"][batch["masked_lm_weights"] > 0]
        counts += np.bincount(real, minlength=vocab_size)
        if counts.sum() >= enough:
            break
    return counts


def count_answers(batches: Iterable[Batch], vocab_size: int) -> AnswerCounts:
    """Counts the right answers of an evaluation set; rows that only fill a batch count nowhere."""
    tokens, labels = np.zeros(vocab_size, np.int64), np.zeros(2, np.int64)
    for batch in batches:
        real = {name: values[batch[EXAMPLE_WEIGHTS] > 0] for name, values in batch.items()}
        tokens += count_masked_tokens([real], vocab_size)
        labels += np.bincount(real["next_sentence_labels"][:, 0], minlength=2)
    return AnswerCounts(tokens, labels)


def pretraining_guesses(train_tokens: np.ndarray, held_out: AnswerCounts) -> dict[str, Guess]:
    """Gives what guessing reaches on held-out examples, by the figures' names.

    Tokens are guessed as often as they are masked in the training data, `train_tokens`
    [vocab_size], with one added to each; next sentences by the held-out examples' own shares, which
    no constant answer beats.
    """
    shares = (train_tokens + 1) / (train_tokens + 1).sum()
    tokens = held_out.tokens / max(int(held_out.tokens.sum()), 1)
    labels = held_out.labels / max(held_out.labels.sum(), 1)
    entropy = -float(sum(share * np.log(share) for share in labels if share > 0))
    loss, best = -float((tokens * np.log(shares)).sum()), float(tokens[train_tokens.argmax()])
    return {
        "masked_lm_loss": Guess("guessing by word frequency", loss),
        "masked_lm_accuracy": Guess("guessing the most frequent token", best),
        "next_sentence_loss": Guess("guessing by the answers' frequency", entropy),
        "next_sentence_accuracy": Guess("always the more frequent answer", float(labels.max())),
    }
