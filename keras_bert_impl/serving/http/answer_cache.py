"""Answers are kept for whoever asks the same again, within bounds in bytes."""

import hashlib
import itertools
import pickle
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from prometheus_client import Counter

from keras_bert_impl.serving.answerer import Answer, Instance

_BESIDE = 200  # bytes of an entry beside its answer

_NUMBERS = itertools.count()


class Known(NamedTuple):
    """An answer, the tokens that it took, and those of its text that were not read."""

    answer: Answer
    tokens: int
    truncated: int


class AnswerCache:
    """What is kept, of all models; what was not asked for longest goes first.

    Neither texts nor objects are kept, but digests and bytes: their size is known, and nobody can
    change an answer that is given twice.

    Attributes:
        size: bytes that are held.
    """

    def __init__(self, most_bytes: int) -> None:
        self.size, self._most = 0, most_bytes
        self._entries, self._lock = OrderedDict[bytes, bytes](), threading.Lock()

    def find(self, key: bytes) -> Known | None:
        """The answer that is kept under a key."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            packed = self._entries[key]
        return Known(*pickle.loads(packed))  # noqa: S301 - from this process' own memory

    def keep(self, key: bytes, known: Known) -> None:
        """Keeps an answer, unless it has no room at all; others make room for it."""
        packed = pickle.dumps(tuple(known), pickle.HIGHEST_PROTOCOL)
        if _bytes_of(packed) > self._most:
            return
        with self._lock:
            self.size -= _bytes_of(self._entries.pop(key, None))
            self._entries[key] = packed
            self.size += _bytes_of(packed)
            while self.size > self._most:
                self.size -= _bytes_of(self._entries.popitem(last=False)[1])


def _bytes_of(packed: bytes | None) -> int:
    return 0 if packed is None else len(packed) + _BESIDE


class KnownAnswers:
    """The answers of one answerer of one open model in a cache.

    Another model, or another version, has others: a model that is opened again begins anew.

    Args:
        hits: counts the answers that were found,
        misses: and those that were not.
    """

    def __init__(self, cache: AnswerCache, hits: Counter, misses: Counter) -> None:
        self._cache, self._hits, self._misses = cache, hits, misses
        self._number = next(_NUMBERS)

    def find(self, instances: Sequence[Instance]) -> list[Known | None]:
        """What is known of instances; None of those that must be computed."""
        found = [self._cache.find(self._key(one)) for one in instances]
        self._misses.inc(found.count(None))
        self._hits.inc(len(found) - found.count(None))
        return found

    def keep(self, instance: Instance, known: Known) -> None:
        """Keeps the answer of an instance."""
        self._cache.keep(self._key(instance), known)

    def _key(self, instance: Instance) -> bytes:
        """A digest of all texts and options; an option that is None is as if it were left out."""
        given = sorted((name, value) for name, value in instance.items() if value is not None)
        asked = repr((self._number, given)).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(asked, digest_size=20).digest()
