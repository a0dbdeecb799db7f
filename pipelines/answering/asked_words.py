"""Whether the words of clients fit the model's vocabulary: counted as they come, told once."""

import logging
import threading
from collections.abc import Sequence
from typing import Any

from keras_bert_impl.serving.answerer import Answerer, Instance, Prepared, Row
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.unknown_words import WordCount, WordCounter

_LOGGER = logging.getLogger(__name__)

_ENOUGH = 200  # words of a few texts say little of those to come


class AskedWords:
    """The words that a model was asked, and whether too many of them are [UNK].

    A warning is logged once, as soon as enough words were asked. No word of a client is kept.
    """

    def __init__(self, text: TextSettings, name: str) -> None:
        self._counter, self._name = WordCounter(text.vocabulary), name
        self._lock, self._count, self._told = threading.Lock(), WordCount(), False

    def add(self, rows: Sequence[Row]) -> None:
        """Counts the words of rows; any thread may."""
        if self._told:
            return
        count = sum((self._counter.count(row["input_ids"]) for row in rows), WordCount())
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


class CountingAnswerer:
    """Answers as another answerer does, and counts the words."""

    def __init__(self, answerer: Answerer, words: AskedWords) -> None:
        self._answerer, self._words = answerer, words

    def __getattr__(self, name: str) -> Any:
        return getattr(self._answerer, name)

    def prepare(self, instances: Sequence[Instance]) -> Prepared:
        """See `Answerer.prepare`."""
        prepared = self._answerer.prepare(instances)
        self._words.add(prepared.rows)
        return prepared
