"""Entries of a configuration that say what a model's head reads.

Which vector stands for a whole input, `classifier_pooling`: the pooler's, the first or last
token's, or the mean. With left-to-right attention the first token sees no other: there the last one
stands for the input. A configuration without the entry means the pooler, as the original and
`transformers` do.

Whether a BiLSTM stands between the encoder and the head, `config.BILSTM_ENTRY`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from keras_bert_impl.config import BILSTM_ENTRY, POOLING_ENTRY, BertConfig
from keras_bert_impl.errors import UserError, shown

POOLER, CLS, MEAN, LAST = "pooler", "cls", "mean", "last"
POOLINGS = (POOLER, CLS, MEAN)
HEAD_POOLINGS = (*POOLINGS, LAST)
"""Of these only heads know the last."""


def pooling_of(config: BertConfig) -> str:
    """The pooling that a configuration says.

    Example:
        >>> pooling_of(BertConfig(vocab_size=9))
        'pooler'
    """
    pooling = config.extra.get(POOLING_ENTRY, POOLER)
    if pooling not in HEAD_POOLINGS:
        known = ", ".join(HEAD_POOLINGS)
        raise UserError(f"{config.origin}: {POOLING_ENTRY} is {shown(pooling)}; take {known}.")
    return str(pooling)


def pools_by_pooler(config: BertConfig) -> bool:
    """Whether the pooling that a configuration says reads the pooler's weights."""
    return pooling_of(config) not in (MEAN, CLS)


def with_pooling(config: BertConfig, pooling: str | None) -> BertConfig:
    """The configuration with another pooling; with None the one that it says.

    Example:
        >>> with_pooling(BertConfig(vocab_size=9), "mean").to_hugging_face()["classifier_pooling"]
        'mean'
    """
    if pooling is None:
        return config
    if pooling not in HEAD_POOLINGS:
        raise UserError(f"`pooling={pooling}` is unknown; choose {', '.join(HEAD_POOLINGS)}.")
    # The pooler is said by saying nothing: the file is one that the original could have written.
    extra = {name: value for name, value in config.extra.items() if name != POOLING_ENTRY}
    if pooling != POOLER:
        extra[POOLING_ENTRY] = pooling
    return config.replace(extra=extra)


def trained_pooling(config: BertConfig) -> str | None:
    """The pooling that a new head is trained with where none is asked for.

    It is the last token's where that alone sees the whole input and the configuration says nothing;
    else None, for what the configuration says.

    Example:
        >>> trained_pooling(BertConfig(vocab_size=9, causal=True))
        'last'
    """
    return LAST if config.causal and POOLING_ENTRY not in config.extra else None


def has_bilstm(config: BertConfig) -> bool:
    """Whether a BiLSTM stands between encoder and head."""
    return config.extra.get(BILSTM_ENTRY) is True  # nothing else that a foreign file may hold


def with_bilstm(config: BertConfig, wanted: bool) -> BertConfig:
    """The configuration with a BiLSTM; unchanged where none is wanted.

    `transformers` has no such model: its `config.json` has a model_type that it does not know.

    Example:
        >>> with_bilstm(BertConfig(vocab_size=9), True).to_hugging_face()["model_type"]
        'keras_bert_impl'
    """
    if not wanted:
        return config
    return config.replace(extra={**config.extra, BILSTM_ENTRY: True})


class LabelUnits(NamedTuple):
    """The units that a regression learns in: its training labels have mean 0 and deviation 1."""

    mean: float
    deviation: float

    def fold(self, path: str, weight: np.ndarray) -> np.ndarray:
        """A weight of a model that gives numbers in the labels' units; the head's are changed.

        Example:
            >>> LabelUnits(3.0, 2.0).fold("classifier/dense/bias", np.float32([0.5]))
            array([4.], dtype=float32)
        """
        return self._moved(path, weight, lambda own, mean: own * self.deviation + mean)

    def unfold(self, path: str, weight: np.ndarray) -> np.ndarray:
        """The weight that `fold` gives such a one of."""
        return self._moved(path, weight, lambda own, mean: (own - mean) / self.deviation)

    def _moved(self, path: str, weight: np.ndarray, change: Callable[..., Any]) -> np.ndarray:
        mean = {"classifier/dense/kernel": 0.0, "classifier/dense/bias": self.mean}.get(path)
        if mean is None:
            return weight
        # In float64, so that each number is rounded once.
        return change(weight.astype(np.float64), mean).astype(weight.dtype)
