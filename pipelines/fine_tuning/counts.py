"""What is odd about the rows of a run: counted for all tasks while rows are made, a line each."""

import contextlib
import hashlib
import logging
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.tokenization.unknown_words import WordCount, WordCounter
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.fine_tuning.task import Task
from pipelines.records.rows import Rows

_LOGGER = logging.getLogger(__name__)

_MIX = np.uint64(0x9E3779B97F4A7C15)  # an odd number: no two answers to a text fall together


class Counted:
    """Rows of a file with something in common, and where the first one stands."""

    def __init__(self) -> None:
        self.count, self.first = 0, ""

    def add(self, place: str) -> None:
        self.first = self.first or place
        self.count += 1

    def warn(self, path: str | Path, what: str) -> None:
        """Says in one line, where there are any, `what` they are, and what is done."""
        if self.count:
            _LOGGER.warning("%s: %s: %d, the first %s.", path, what, self.count, self.first)


class RowCounts:
    """Counts the examples of a split; 16 bytes each.

    A row occurs twice, contradicts another one or is in two splits by its texts, whatever a model
    reads of them; rows without any text, and those not `compared`, count in none of these.
    """

    def __init__(self, task: Task[Any, Any], split: str, vocabulary: Vocabulary) -> None:
        self._task, self._split = task, split
        self.name = ", ".join(map(str, task.files(split))) or f"the split {split}"
        self._texts, self._answers = array("Q"), array("Q")
        self._classes = Counter[str]()
        self._notes = dict[str, Counted]()
        self._words, self._count_words = WordCount(), WordCounter(vocabulary).count
        self._num_cut = 0

    def add(self, examples: Sequence[Any], rows: Rows) -> None:
        for example in examples:
            texts, facts = list(self._task.texts(example)), self._task.facts(example)
            counts = facts.compared and any(map(str.strip, texts))
            self._texts.append(_hash(texts) if counts else 0)
            self._answers.append(_hash(facts.classes or ()))
            if facts.classes is not None:
                self._classes.update(facts.classes or ["none"])
            if facts.note:
                self._notes.setdefault(facts.note, Counted()).add(f"on line {facts.line}")
        self._words += self._count_words(rows.tokens["input_ids"])
        if rows.num_truncated is not None:
            self._num_cut += int(np.count_nonzero(rows.num_truncated))

    def tell(self, training: "RowCounts | None" = None) -> None:
        """Logs what is odd, beside the split that is trained on."""
        if training is not None and training is not self and training.name == self.name:
            self.name = f"the {self._split} set of {self.name}"  # which was cut off it
        texts = np.frombuffer(self._texts, np.uint64)
        both = texts ^ (np.frombuffer(self._answers, np.uint64) * _MIX)
        _, first = np.unique(both, return_index=True)
        again = ~np.isin(np.arange(len(texts)), first)
        distinct, answers = np.unique(texts[first], return_counts=True)
        self._warn(again, texts, "rows that occur twice")
        what = "rows with the text of another row and another label; correct them"
        self._warn(np.isin(texts, distinct[answers > 1]), texts, what)
        if training is not None and training is not self:
            known = np.frombuffer(training._texts, np.uint64)
            what = f"rows of {training.name} as well, on which figures say little"
            self._warn(np.isin(texts, known), texts, what)
        for note, counted in self._notes.items():
            counted.warn(self.name, note)
        self._tell_of_classes()
        if self._words.unknown:
            _LOGGER.info("%s: %s become [UNK].", self.name, self._words)
        if self._num_cut:
            share = 100 * self._num_cut / len(texts)
            _LOGGER.info("%s: %.1f %% of the texts are cut to the length.", self.name, share)

    def _warn(self, found: NDArray[np.bool_], texts: NDArray[np.uint64], what: str) -> None:
        found = found & (texts != 0)
        count, rows = int(found.sum()), len(texts)
        if count:
            number = int(found.argmax())
            example = next(islice(self._task.examples(self._split), number, None))
            line = self._task.facts(example).line
            place = f"on line {line}" if line else f"example {number + 1}"
            of = f"all {rows:,}" if count == rows else f"{count:,} of {rows:,}"
            _LOGGER.warning("%s: %s: %s, the first %s.", self.name, what, of, place)

    def _tell_of_classes(self) -> None:
        if not self._classes:
            return
        ((most, count),) = self._classes.most_common(1)
        share = count / self._classes.total()
        if share == 1.0:
            _LOGGER.warning(
                "%s: all %s labels are %r; its figures do not show what a model has learned.",
                *(self.name, f"{count:,}", most),
            )
        elif share > 0.5:
            _LOGGER.info("%s: %.1f %% of the labels are %r.", self.name, 100 * share, most)
        pairs = similar(self._classes)
        if pairs:
            more = f" (and {len(pairs) - 1} more such pairs)" if len(pairs) > 1 else ""
            _LOGGER.warning(
                "%s: the labels %r and %r differ only in how they are written%s; write each in one "
                "way.",
                *(self.name, *pairs[0], more),
            )


def similar(labels: Iterable[str]) -> list[tuple[str, str]]:
    """The pairs of labels that differ only in case or blanks, or are the same number.

    Example:
        >>> similar(["spam", "ham", "Spam ", "1", "1.0"])
        [('spam', 'Spam '), ('1', '1.0')]
    """
    seen, pairs = dict[object, str](), []
    for label in labels:
        key: object = "".join(label.split()).casefold()
        with contextlib.suppress(ValueError):
            key = float(label)
        if (first := seen.setdefault(key, label)) != label:
            pairs.append((first, label))
    return pairs


def _hash(texts: Iterable[str]) -> int:
    """8 bytes of some texts, never 0."""
    joined = "\0".join(texts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(joined, digest_size=8).digest(), "little") | 1
