"""Answers are kept for whoever asks the same again, within bounds in bytes."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import orjson
from prometheus_client import Counter

from keras_bert_impl.serving.answerer import Answer, Instance
from keras_bert_impl.serving.http.bodies import to_json

_BESIDE = 280  # bytes of an entry beside its answer


class Known(NamedTuple):
    """An answer, the tokens that it took, and those of its text that were not read."""

    answer: Answer
    tokens: int
    truncated: int


class AnswerCache:
    """What is kept, of all models; what was not asked for longest goes first.

    Neither texts nor objects are kept, but digests and JSON: its size is known, and nobody can
    change an answer that is given twice.
    """

    def __init__(self, most_bytes: int, hits: Counter, misses: Counter) -> None:
        self.size, self._most, self._hits, self._misses = 0, most_bytes, hits, misses
        self._entries, self._lock = OrderedDict[bytes, bytes](), threading.Lock()

    def find(self, model: int, instances: Sequence[Instance]) -> list[Known | None]:
        """What is known of instances that a model is asked, each open model by its own number."""
        keys = [_key(model, one) for one in instances]
        with self._lock:
            found = [self._entries.get(key) for key in keys]
            for key in self._entries.keys() & keys:
                self._entries.move_to_end(key)
        return [None if one is None else Known(*orjson.loads(one)) for one in found]

    def count(self, found: int, missed: int) -> None:
        self._hits.inc(found)
        self._misses.inc(missed)

    def keep(self, model: int, instance: Instance, known: Known) -> None:
        """Keeps an answer, unless it is larger than all room; others make room for it."""
        try:
            key = _key(model, instance)
            # A copy: what orjson gives has room for a kilobyte behind it.
            packed = memoryview(to_json([*known])).tobytes()
        except ValueError:  # it holds a number that is not finite
            return
        if len(packed) + _BESIDE > self._most:
            return
        with self._lock:
            if key not in self._entries:
                self._entries[key] = packed
                self.size += len(packed) + _BESIDE
            while self.size > self._most:
                self.size -= len(self._entries.popitem(last=False)[1]) + _BESIDE


def _key(model: int, instance: Instance) -> bytes:
    """A digest of all texts and options; an option that is None is as if it were left out."""
    given = sorted((name, value) for name, value in instance.items() if value is not None)
    asked = repr((model, given)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(asked, digest_size=20).digest()
