"""Whether the words of clients fit the model's vocabulary: counted as they come, told once."""

import logging
import threading
from collections.abc import Sequence
from typing import Any

from keras_bert_impl.serving.answerer import Answerer, Instance, Prepared
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.unknown_words import WordCount, WordCounter

_LOGGER = logging.getLogger(__name__)

_ENOUGH = 200  # words of a few texts say little of those to come


class CountingAnswerer:
    """Answers as another answerer does, and counts the words that become [UNK].

    A warning is logged once, as soon as enough words were asked and too many of them are unknown.
    It holds no word of a client.

    Args:
        answerer: who answers.
        text: the vocabulary that its rows are of.
        name: what the warning calls the model.
    """

    def __init__(self, answerer: Answerer, text: TextSettings, name: str) -> None:
        self._answerer, self._name = answerer, name
        self._counter, self._count = WordCounter(text.vocabulary), WordCount()
        self._lock, self._told = threading.Lock(), False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._answerer, name)

    def prepare(self, instances: Sequence[Instance]) -> Prepared:
        """See `Answerer.prepare`."""
        prepared = self._answerer.prepare(instances)
        if not self._told:
            for row in prepared.rows:
                self._add(self._counter.count(row["input_ids"]))
        return prepared

    def _add(self, count: WordCount) -> None:
        with self._lock:
            self._count += count
            if self._told or self._count.words < _ENOUGH or not self._count.is_large:
                return
            self._told = True
        _LOGGER.warning(
            "%s: %s asked so far become [UNK]: the model's vocabulary does not fit what it is "
            "asked.",
            self._name,
            self._count,
        )
