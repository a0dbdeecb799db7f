"""Requests wait while the engine is busy, and rows of like length are computed together.

Threads take what waits, cut it into rows, and compute a batch as soon as the engine is free: one
client alone never waits for others, and under load a batch fills up while the one before it is
computed. The event loop only hands requests over and gets answers back.
"""

import asyncio
import contextlib
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from keras_bert_impl.engines.engine import NotFiniteError
from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.answerer import (
    Answer,
    Answerer,
    Instance,
    Prepared,
    Row,
    RowOutputs,
    row_length,
)
from keras_bert_impl.serving.http.bodies import RequestError, bad_request
from keras_bert_impl.serving.http.row_pool import RowPool, WaitingRow

_LOGGER = logging.getLogger(__name__)

_FAILED = "the model failed at this request; the server's log says why."
_BATCHES_READY = 32  # of this many batches rows are made ahead: of more rows more have one length
_INSTANCES_PREPARED = 32  # at a time, so that the first of them are soon computed
_LARGE = 1 << 20  # characters: cutting them into tokens takes up to fifty times as many bytes
_ONE_LARGE = threading.Lock()  # of all models, so that such requests do not add up
_OF_BEFORE = 0.8  # the measured speed changes slowly
_BATCHES_TO_KNOW = 20  # the first ones may be slow: an engine prepares for each length
_LONGEST_WAIT = 60  # seconds that a client is asked to wait


class Answered(NamedTuple):
    """Answers, and what they took.

    Attributes:
        answers: one for each instance.
        tokens: of all their rows, without padding.
        num_truncated: of each instance the tokens that were not read; () where all were.
    """

    answers: list[Answer]
    tokens: int
    num_truncated: Sequence[int] = ()


class Batch(NamedTuple):
    """A batch that was computed: its rows, their tokens, these with padding, and its time."""

    rows: int
    tokens: int
    positions: int
    seconds: float


Observer = Callable[[Batch], None]
"""Hears of what is computed."""


@dataclass(eq=False, slots=True)
class _Request:
    """A request from its arrival to its answers.

    Attributes:
        instances: what is asked.
        loop: of the client that waits for
        answer: its answers.
        over: the client waits no more.
        prepared: its rows, as soon as they are made.
        outputs: of its rows.
        missing: how many rows are not computed yet.
    """

    instances: Sequence[Instance]
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[Answered]
    over: bool = False
    prepared: Prepared | None = None
    outputs: list[Any] = field(default_factory=list)
    missing: int = 0
    tokens: int = 0

    def row(self, number: int) -> Row:
        assert self.prepared is not None
        return self.prepared.rows[number]


_Result = tuple[_Request, Answered | Exception]


class Batcher:
    """Answers requests with one answerer, many at a time.

    Args:
        most_waiting: how many instances may wait; a request of more is taken where none waits. A
            large request counts for half of them at most, so that it shuts no other out.
    """

    def __init__(
        self,
        answerer: Answerer,
        most_waiting: int,
        observer: Observer | None = None,
        most_seconds: float = math.inf,
    ) -> None:
        self._answerer, self._most, self._observer = answerer, most_waiting, observer
        self._most_seconds = most_seconds
        self._changed = threading.Condition()
        self._incoming = deque[_Request]()
        self._rows = RowPool()
        self._computing = self._waiting = self._counted = self._batches = 0
        self._seconds_a_row = 0.0
        self._closed = False
        # While as many batches as are worth it are computed, one thread prepares the next.
        self._threads = [
            threading.Thread(target=self._work, name=f"batches-{number}", daemon=True)
            for number in range(answerer.batches_at_once + 1)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """How many instances wait for their answers."""
        return self._waiting

    def ask(self, instances: Sequence[Instance]) -> asyncio.Future[Answered]:
        """Answers instances; called in an event loop.

        Returns:
            What will have the answers. Once it is done in another way, cancelled say, what is not
            begun is dropped. It may end with `RequestError`: an instance is not what the model
            answers (400), or the model failed (500).
        """
        loop = asyncio.get_running_loop()
        request = _Request(instances, loop, loop.create_future())
        self._accept(request)
        request.answer.add_done_callback(lambda _: self._forget(request))
        return request.answer

    def close(self) -> None:
        """Answers what waits, and ends the threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _accept(self, request: _Request) -> None:
        with self._changed:
            if self._closed:
                raise RequestError(503, "the server is about to stop; ask again.", retry_after=1)
            too_many = self._counted + self._share_of(request) > self._most
            known = self._batches >= _BATCHES_TO_KNOW
            too_long = known and self._seconds_left() > self._most_seconds
            if self._waiting and (too_many or too_long):
                raise RequestError(
                    429, "too many requests wait; ask again later.", retry_after=self._wait()
                )
            self._waiting += len(request.instances)
            self._counted += self._share_of(request)
            self._incoming.append(request)
            self._changed.notify()

    def _share_of(self, request: _Request) -> int:
        """What a request takes of the instances that may wait."""
        return min(len(request.instances), max(1, self._most // 2))

    def _seconds_left(self) -> float:
        """The seconds that what waits will take."""
        return self._waiting * self._seconds_a_row

    def _wait(self) -> int:
        """In how many seconds a client should ask again."""
        return max(1, min(_LONGEST_WAIT, math.ceil(self._seconds_left())))

    def _forget(self, request: _Request) -> None:
        if not request.over:
            with self._changed:
                if not request.over:
                    self._end(request)
                    self._rows.drop(request)

    def _end(self, request: _Request) -> None:
        request.over = True
        self._waiting -= len(request.instances)
        self._counted -= self._share_of(request)
        if self._closed and not self._waiting:
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                while (task := self._task()) is None:
                    if self._closed and not self._waiting:
                        return
                    self._changed.wait()
            task()

    def _task(self) -> Callable[[], None] | None:
        """What is best done next: a full batch, more rows, or the rows that there are."""
        budget, free = self._answerer.tokens_at_once, self._free()
        full = self._rows.positions >= budget
        ready = self._rows.positions >= _BATCHES_READY * budget
        if self._incoming and not (full and free) and not ready:
            requests = self._take_requests()
            return lambda: self._prepare(requests)
        if self._rows and free:
            # Few rows are divided among those who could compute them.
            share = budget if free == 1 else -(-self._rows.positions // free)
            batch = self._rows.take(min(budget, share))
            self._computing += 1
            if self._rows or self._incoming:
                self._changed.notify()
            return lambda: self._compute(batch)
        return None

    def _free(self) -> int:
        return self._answerer.batches_at_once - self._computing

    def _take_requests(self) -> list[_Request]:
        """Some requests, about as many as fill a batch."""
        taken = list[_Request]()
        count = 0
        while self._incoming and count < _INSTANCES_PREPARED:
            request = self._incoming.popleft()
            if not request.over:
                taken.append(request)
                count += len(request.instances)
        if self._incoming:
            self._changed.notify()
        return taken

    def _prepare(self, requests: Sequence[_Request]) -> None:
        done = list[_Result]()
        for request in requests:
            try:
                with _ONE_LARGE if _is_large(request.instances) else contextlib.nullcontext():
                    request.prepared = self._answerer.prepare(request.instances)
                if not request.prepared.rows:
                    done.append((request, self._finished(request)))
            except Exception as error:
                done.append((request, _fault_of(error)))
        failed = {id(request) for request, _ in done}
        with self._changed:
            for request in requests:
                if id(request) not in failed and not request.over:
                    self._add_rows(request)
            self._changed.notify()
        self._deliver(done)

    def _add_rows(self, request: _Request) -> None:
        assert request.prepared is not None
        lengths = [row_length(row) for row in request.prepared.rows]
        request.outputs, request.missing = [None] * len(lengths), len(lengths)
        request.tokens = sum(lengths)
        self._rows.add(request, lengths)

    def _compute(self, batch: Sequence[WaitingRow]) -> None:
        started = time.perf_counter()
        outputs: Sequence[RowOutputs] | Exception
        try:
            outputs = self._answerer.compute([row.owner.row(row.number) for row in batch])
        except Exception as error:
            outputs = error
        seconds = time.perf_counter() - started
        with self._changed:
            self._computing -= 1
            share = seconds / len(batch) / self._answerer.batches_at_once
            before = self._seconds_a_row or share
            self._seconds_a_row = before * _OF_BEFORE + share * (1 - _OF_BEFORE)
            self._batches += 1
            self._changed.notify()
        if isinstance(outputs, Exception):
            self._compute_apart(batch, outputs)
            return
        self._observe(batch, seconds)
        self._scatter(batch, outputs)

    def _compute_apart(self, batch: Sequence[WaitingRow], error: Exception) -> None:
        """A batch failed: its requests are computed one by one, so that only the cause fails."""
        owners = list(dict.fromkeys(row.owner for row in batch))
        if len(owners) == 1:
            with self._changed:
                self._rows.drop(owners[0])
            self._deliver([(owners[0], _fault_of(error, computing=True))])
            return
        for owner in owners:
            own = [row for row in batch if row.owner is owner]
            with self._changed:
                self._computing += 1
            self._compute(own)

    def _observe(self, batch: Sequence[WaitingRow], seconds: float) -> None:
        if self._observer is not None:
            positions = len(batch) * batch[-1].length
            tokens = sum(row.length for row in batch)
            self._observer(Batch(len(batch), tokens, positions, seconds))

    def _scatter(self, batch: Sequence[WaitingRow], outputs: Sequence[RowOutputs]) -> None:
        complete = list[_Request]()
        with self._changed:  # several threads may have rows of one request
            for row, output in zip(batch, outputs, strict=True):
                request = row.owner
                request.outputs[row.number] = output
                request.missing -= 1
                if not request.missing and not request.over:
                    complete.append(request)
        self._deliver([(request, self._finished(request)) for request in complete])

    def _finished(self, request: _Request) -> Answered | Exception:
        assert request.prepared is not None
        try:
            answers = self._answerer.finish(request.prepared, request.outputs)
        except Exception as error:
            return _fault_of(error, computing=True)
        return Answered(answers, request.tokens, request.prepared.num_truncated)

    def _deliver(self, results: Iterable[_Result]) -> None:
        by_loop = dict[asyncio.AbstractEventLoop, list[_Result]]()
        with self._changed:
            for request, result in results:
                if not request.over:
                    self._end(request)
                    by_loop.setdefault(request.loop, []).append((request, result))
        for loop, some in by_loop.items():
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(_settle, some)


def _is_large(instances: Sequence[Instance]) -> bool:
    return sum(_characters(value) for one in instances for value in one.values()) > _LARGE


def _characters(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(_characters, value))
    return len(value) if isinstance(value, str) else 0


def _settle(results: Sequence[_Result]) -> None:
    for request, result in results:
        if request.answer.done():
            continue
        if isinstance(result, Answered):
            request.answer.set_result(result)
        else:
            request.answer.set_exception(result)


def _fault_of(error: Exception, computing: bool = False) -> RequestError:
    """What a client learns: its own mistakes, and of others only that there was one."""
    if isinstance(error, UserError) and not computing:
        return bad_request(str(error))
    _LOGGER.error(
        "A request failed: %s", error, exc_info=None if isinstance(error, UserError) else error
    )
    if isinstance(error, NotFiniteError):
        return RequestError(500, "the model's numbers are not finite for this request.")
    return RequestError(500, _FAILED)
