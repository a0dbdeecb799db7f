"""Counts what a set of examples holds: lengths, masked positions, replacements, labels."""

from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from pipelines.pretraining_data.recipe import VocabularyFacts

KINDS = ("mask", "kept", "random")
_DECILES = 10


def random_next(share: float) -> str:
    """The share of examples labelled random as people read it, with a word where it is too large.

    Example:
        >>> random_next(0.545), random_next(1.0)
        ('54.5 %', '100.0 % (hardly a true next to learn from: were the lines sentences?)')
    """
    remark = " (hardly a true next to learn from: were the lines sentences?)"
    return f"{100 * share:.1f} %{remark if share > 0.9 else ''}"


class PairStatistics:
    """Adds up figures over batches of features.

    "Kept" means that the token at a masked position equals the true one, so a random draw that hits
    it counts as kept.

    Attributes:
        examples: how many were added.
        random_next: how many of them are labelled random.
        lengths, lengths_a, lengths_b: int64 [length + 1], how many examples have so many tokens;
            `lengths` counts [CLS] and [SEP], the others do not.
        masks: int64 [predictions + 1], how many examples have so many masked positions.
        kinds: masked positions by what is shown there.
        deciles: int64 [10], masked positions by their tenth of the example.
        shares_of_a: int64 [10], examples by A's share of the tokens.
        whole_labels: masked tokens that begin a word.
    """

    def __init__(
        self, length: int, predictions: int, facts: VocabularyFacts, pairs: bool = True
    ) -> None:
        self._length, self._facts, self._framing = length, facts, 3 if pairs else 2
        self.examples = self.random_next = self.whole_labels = 0
        self.lengths = np.zeros(length + 1, np.int64)
        self.lengths_a = np.zeros(length + 1, np.int64)
        self.lengths_b = np.zeros(length + 1, np.int64)
        self.masks = np.zeros(predictions + 1, np.int64)
        self.kinds: Counter[str] = Counter()
        self.deciles = np.zeros(_DECILES, np.int64)
        self.shares_of_a = np.zeros(_DECILES, np.int64)

    def add(self, features: Mapping[str, NDArray]) -> None:
        """Adds a batch.

        Args:
            features: the reference's names, arrays [examples, size].
        """
        total = features["input_mask"].sum(axis=1, dtype=np.int64)
        len_b = np.maximum(features["segment_ids"].sum(axis=1, dtype=np.int64) - 1, 0)
        # Segments of another maker's records may lie on padding.
        len_a = np.maximum(total - len_b - self._framing, 0)
        self.examples += len(total)
        self.random_next += int(features["next_sentence_labels"].sum())
        self.lengths += np.bincount(total, minlength=self._length + 1)
        self.lengths_a += np.bincount(len_a, minlength=self._length + 1)
        self.lengths_b += np.bincount(len_b, minlength=self._length + 1)
        share = _DECILES * len_a // np.maximum(len_a + len_b, 1)
        self.shares_of_a += _counted(share)
        self._add_masks(features, total)

    def _add_masks(self, features: Mapping[str, NDArray], total: NDArray[np.int64]) -> None:
        real = features["masked_lm_weights"] > 0
        row, slot = np.nonzero(real)
        position = features["masked_lm_positions"][row, slot]
        true_id = features["masked_lm_ids"][row, slot]
        shown = features["input_ids"][row, position]
        self.masks += np.bincount(real.sum(axis=1), minlength=len(self.masks))
        kept = shown == true_id
        hidden = (shown == self._facts.special.mask) & ~kept
        self.kinds["kept"] += int(kept.sum())
        self.kinds["mask"] += int(hidden.sum())
        self.kinds["random"] += int((~kept & ~hidden).sum())
        self.deciles += _counted(_DECILES * position // total[row])
        self.whole_labels += int((~self._facts.continuation[true_id]).sum())

    def figures(self) -> dict[str, float]:
        """Shares and means by name."""
        examples, masked = max(1, self.examples), max(1, sum(self.kinds.values()))
        tokens = _weighted(self.lengths)
        return {
            "examples": self.examples,
            "random_next": self.random_next / examples,
            "full_length": self.lengths[-1] / examples,
            "mean_length": tokens / examples,
            "sd_length": _deviation(self.lengths),
            "mean_length_a": _weighted(self.lengths_a) / examples,
            "sd_length_a": _deviation(self.lengths_a),
            "mean_length_b": _weighted(self.lengths_b) / examples,
            "sd_length_b": _deviation(self.lengths_b),
            "padding": 1 - tokens / (examples * self._length),
            "masks_per_example": masked / examples,
            "masked_share": masked / max(1, tokens),
            "whole_labels_per_example": self.whole_labels / examples,
            **{f"share_{kind}": self.kinds[kind] / masked for kind in KINDS},
        }


def _counted(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.bincount(np.minimum(values, _DECILES - 1), minlength=_DECILES)


def _weighted(histogram: NDArray[np.int64]) -> int:
    return int((histogram * np.arange(len(histogram))).sum())


def _deviation(histogram: NDArray[np.int64]) -> float:
    count = max(1, int(histogram.sum()))
    mean = _weighted(histogram) / count
    return float(np.sqrt((histogram * (np.arange(len(histogram)) - mean) ** 2).sum() / count))
