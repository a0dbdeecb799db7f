"""Requests wait while the engine is busy, and rows of like length are computed together.

Threads take what waits, cut it into rows, and compute a batch as soon as the engine is free: one
client alone never waits for others, and under load a batch fills up while the one before it is
computed. The event loop only hands requests over and gets answers back.

A small request waits for the batches that are being computed and for other small ones. Large
requests are prepared and finished part by part, each in its turn, and fill what is left.
"""

import asyncio
import contextlib
import itertools
import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from keras_bert_impl.engines.engine import NotFiniteError
from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.answerer import (
    Answerer,
    Instance,
    Prepared,
    RowOutputs,
    named_otherwise,
    row_length,
)
from keras_bert_impl.serving.http.answer_cache import AnswerCache, Known
from keras_bert_impl.serving.http.bodies import RequestError, bad_request
from keras_bert_impl.serving.http.row_pool import WaitingRow
from keras_bert_impl.serving.http.waiting import Answered, Line, Pace, Part, Request, size_of

_LOGGER = logging.getLogger(__name__)

_FAILED = "the model failed at this request; the server's log says why."
_BATCHES_READY = 8  # of so many batches rows of large requests are made ahead, to have like lengths
_BATCHES_OF_SMALL = 3  # as much is computed before a batch of a large request that waits
_PARTS_OF_QUEUE = 4  # a large request counts for one of them at most, and one is not for them
_MOST_CHARACTERS = 256 << 20  # of all requests that wait; a packed body may hold many
_LARGE = 1 << 20  # characters: cutting them into tokens takes up to fifty times as many bytes
_ONE_LARGE = threading.RLock()  # of all models, so that such requests do not add up
_LOOK_AGAIN = 0.05  # seconds: another model may have let go of it
_BATCHES_TO_KNOW = 20  # the first ones may be slow: an engine prepares for each length
_NUMBERS = itertools.count()  # an open model is not another one, nor another version
_clock = time.perf_counter


class Batch(NamedTuple):
    """A batch that was computed: its rows, their tokens, these with padding, and its time."""

    rows: int
    tokens: int
    positions: int
    seconds: float


Observer = Callable[[Batch], None]
"""Hears of what is computed."""


_Result = tuple[Request, Answered | Exception]


class Batcher:
    """Answers requests with one answerer, many at a time.

    Args:
        most_waiting: how many instances may wait; a request of more is taken where none waits. A
            large request counts for a quarter of them at most. One that does may not use the last
            quarter, and others of several instances not the last eighth.
        cache: has answers that are given at once, and keeps others.
        held: the characters that wait here and elsewhere, which have one bound.
    """

    def __init__(
        self,
        answerer: Answerer,
        most_waiting: int,
        observer: Observer | None = None,
        most_seconds: float = math.inf,
        cache: AnswerCache | None = None,
        held: Callable[[], int] | None = None,
    ) -> None:
        self._answerer, self._most, self._observer = answerer, most_waiting, observer
        self._most_seconds, self._cache, self._number = most_seconds, cache, next(_NUMBERS)
        self._share = max(1, most_waiting // _PARTS_OF_QUEUE)
        self._changed = threading.Condition()
        self._small, self._large = Line(), Line()
        self._pace = Pace()
        self._computing = self._computing_tokens = self._waiting = self.characters = 0
        self._held = held or (lambda: self.characters)
        self._small_computed = 0  # tokens, while large requests wait for a batch
        self._closed = False
        # While as many batches as are worth it are computed, one thread prepares the next.
        names = (f"batches-{number}" for number in range(answerer.batches_at_once + 1))
        self._threads = [threading.Thread(target=self._work, name=x, daemon=True) for x in names]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        return self._waiting

    def ask(self, instances: Sequence[Instance]) -> asyncio.Future[Answered]:
        """Gives what will have the answers of instances; called in an event loop.

        Once it is done in another way, cancelled say, what is not begun is dropped. It may end with
        `RequestError`: an instance is not what the model answers (400), or the model failed (500).
        """
        request = self._request_of(instances, looks_up=True)
        if request.missing:
            self._accept(request)
            request.answer.add_done_callback(lambda _: self._forget(request))
        else:
            request.answer.set_result(request.answered())
        if self._cache is not None and request.is_small:
            self._cache.count(len(instances) - request.asked, request.asked)
        return request.answer

    def retry_after(self, answer: asyncio.Future[Answered]) -> int:
        """Forgets a request; in how many seconds it would be answered if it were asked now."""
        with self._changed:
            request = self._small.requests.get(answer) or self._large.requests.get(answer)
            if request is None:
                return 1
            self._forget(request)
            return self._wait(self._request_of(request.instances))

    def close(self) -> None:
        """Answers what waits, and ends the threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _request_of(self, instances: Sequence[Instance], looks_up: bool = False) -> Request:
        loop, count = asyncio.get_running_loop(), len(instances)
        request = Request(instances, loop, loop.create_future(), [None] * count, [0] * count)
        request.divide()
        # Who prepares the parts of a large request looks them up: the loop has no time for it.
        if looks_up and request.is_small and self._cache is not None:
            _fill(request, range(count), self._cache.find(self._number, instances))
            request.divide()
        count = request.missing
        request.counted = count if request.is_small else min(count, self._share)
        return request

    def _line_of(self, request: Request) -> Line:
        return self._small if request.is_small else self._large

    def _accept(self, request: Request) -> None:
        with self._changed:
            if self._closed:
                raise RequestError(503, "the server is about to stop; ask again.", retry_after=1)
            is_full = self._has_no_room(request)
            known = self._pace.batches >= _BATCHES_TO_KNOW
            too_long = known and self._seconds_until(request) > self._most_seconds
            if self._waiting and (is_full or too_long):
                sentence = "too many requests wait; ask again later."
                raise RequestError(429, sentence, retry_after=self._wait(request, is_full))
            self._waiting += request.asked
            self.characters += request.size
            self._line_of(request).add(request)
            self._changed.notify()

    def _has_no_room(self, request: Request) -> bool:
        large, own = self._large.counted, request.counted
        too_many = self._small.counted + large + own > self._most
        if not request.is_small and request.asked > 1:  # a long text is one, as a short one is
            kept = self._share if own == self._share else self._share // 2
            too_many |= large + own > self._most - kept
        # Small ones are of few characters, and must not wait for one that is alone too large.
        is_long = self._held() + request.size > _MOST_CHARACTERS
        return too_many or (is_long and not request.is_small)

    def _seconds_until(self, request: Request, is_full: bool = False) -> float:
        """In how many seconds a request would be answered: it and what is computed before it.

        Where `is_full`, it is not taken before one of the large requests that wait has ended.
        """
        own, small = self._tokens_left(request), self._small
        before = small.rows.positions + self._pace.tokens(small.characters)
        before += self._computing_tokens / 2
        left = [self._tokens_left(other) for other in self._large.requests.values()]
        if request.is_small:
            before += before / _BATCHES_OF_SMALL if left else 0.0
            return self._pace.seconds(own + before)
        first = min(left, default=0.0) if is_full else 0.0
        in_turn = own + sum(first + min(other - first, own) for other in left)
        # While a batch of large ones is computed as many small ones come as there are now.
        known = small.requests.values()
        coming = sum(one.tokens + self._pace.tokens(one.characters) for one in known)
        between = min(_BATCHES_OF_SMALL, coming / self._answerer.tokens_at_once)
        return self._pace.seconds(before + in_turn * (1 + between))

    def _tokens_left(self, request: Request) -> float:
        return request.tokens_left + self._pace.tokens(request.characters)

    def _wait(self, request: Request, is_full: bool = False) -> int:
        return max(1, round(self._seconds_until(request, is_full)))

    def _forget(self, request: Request) -> None:
        if not request.over:
            with self._changed:
                if not request.over:
                    self._end(request)

    def _end(self, request: Request) -> None:
        request.over = True
        self._waiting -= request.asked
        self.characters -= request.size
        self._line_of(request).drop(request)
        if self._closed and not self._waiting:
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                while (task := self._task()) is None:
                    if self._closed and not self._waiting:
                        return
                    self._changed.wait(_LOOK_AGAIN if self._large.unprepared else None)
                self._changed.notify()  # there may be more to do
            task()

    def _task(self) -> Callable[[], None] | None:
        """What is best done next: a full batch, more rows, or the rows that there are."""
        budget = self._answerer.tokens_at_once
        free = self._answerer.batches_at_once - self._computing
        small, large = self._small, self._large
        could_compute = free and small.rows.positions + large.rows.positions >= budget
        # Small requests leave large ones their turn of preparing, too.
        none_comes = not large.rows and not large.preparing
        if none_comes and self._is_due() and (parts := self._parts_of_large()):
            return partial(self._prepare, large, parts)
        # One thread prepares small requests whatever else there is to do.
        if small.unprepared and not (could_compute and small.preparing):
            small.preparing += 1
            return partial(self._prepare, small, small.take_parts(lambda _: True))
        if free and (small.rows or could_compute):
            return partial(self._compute, self._take_rows(budget, free))
        if large.rows.positions < _BATCHES_READY * budget and (parts := self._parts_of_large()):
            return partial(self._prepare, large, parts)
        if free and large.rows:
            return partial(self._compute, self._take_rows(budget, free))
        return None

    def _is_due(self) -> bool:
        return self._small_computed >= _BATCHES_OF_SMALL * self._answerer.tokens_at_once

    def _parts_of_large(self) -> list[Part]:
        """Parts to prepare now: one thread is left for small requests, however long it takes."""
        large = self._large
        if large.preparing == self._answerer.batches_at_once:
            return []
        parts = large.take_parts(
            lambda part: part.characters <= _LARGE or _ONE_LARGE.acquire(blocking=False)
        )
        large.preparing += bool(parts)
        return parts

    def _prepare(self, line: Line, parts: Sequence[Part]) -> None:
        done, prepared = list[_Result](), list[Part]()
        for part in parts:
            try:
                prepared += self._prepared(part)
            except Exception as error:
                done.append((part.request, _fault_of(error)))
            if line is self._large and part.characters > _LARGE:
                _ONE_LARGE.release()
        with self._changed:
            line.preparing -= 1
            for part in parts:
                line.leave(part)
                if not part.request.missing:  # all its answers were kept
                    done.append((part.request, part.request.answered()))
            for part in prepared:
                self._add_rows(line, part)
            self._changed.notify()
        self._finish([part for part in prepared if not part.missing])
        self._deliver(done)

    def _prepared(self, part: Part) -> list[Part]:
        """A part with its rows; divided where it must be known whose rows they are."""
        parts = [part] if self._cache is None else self._unknown(part, self._cache)
        for one in parts:
            one.prepared = self._cut(one)
        return parts

    def _unknown(self, part: Part, cache: AnswerCache) -> list[Part]:
        """What is not known of a part, one by one."""
        request, numbers = part.request, part.numbers
        if not request.is_small:
            known = cache.find(self._number, part.instances)
            with self._changed:
                _fill(request, part.numbers, known)
            numbers = [at for at, one in zip(part.numbers, known, strict=True) if one is None]
            cache.count(len(known) - len(numbers), len(numbers))
        return [Part(request, [at], size_of(request.instances[at])) for at in numbers]

    def _cut(self, part: Part) -> Prepared:
        with _ONE_LARGE if part.characters > _LARGE else contextlib.nullcontext():
            try:
                return self._answerer.prepare(part.instances)
            except UserError as error:  # the sentence counts the instances, of all parts
                raise named_otherwise(
                    error, lambda number: f"instance {part.numbers[number] + 1}"
                ) from None

    def _add_rows(self, line: Line, part: Part) -> None:
        assert part.prepared is not None
        request, lengths = part.request, [row_length(row) for row in part.prepared.rows]
        part.outputs, part.missing, tokens = [None] * len(lengths), len(lengths), sum(lengths)
        self._pace.prepared(tokens, part.characters)
        if not request.over:
            request.tokens += tokens
            request.tokens_left += tokens
            line.rows.add(part, lengths)

    def _take_rows(self, budget: int, free: int) -> list[WaitingRow]:
        """The next batch: of small requests, but now and then of large ones."""
        small, large = self._small, self._large
        is_small = bool(small.rows) and not (large.rows and self._is_due())
        rows = small.rows if is_small else large.rows
        # Few rows are divided among those who could compute them.
        share = budget if free == 1 else -(-rows.positions // free)
        batch = rows.take(min(budget, share))
        for row in batch:
            row.owner.request.tokens_left -= row.length
        self._begin(batch)
        counts = is_small and self._large.requests
        self._small_computed = self._small_computed + _tokens(batch) if counts else 0
        return batch

    def _begin(self, batch: Sequence[WaitingRow]) -> None:
        self._computing += 1
        self._computing_tokens += _tokens(batch)

    def _compute(self, batch: Sequence[WaitingRow]) -> None:
        started = _clock()
        outputs: Sequence[RowOutputs] | Exception
        try:
            outputs = self._answerer.compute([row.owner.row(row.number) for row in batch])
        except Exception as error:
            outputs = error
        ended, positions = _clock(), len(batch) * batch[-1].length
        with self._changed:
            self._computing -= 1
            self._computing_tokens -= _tokens(batch)
            if positions > self._answerer.tokens_at_once / 4:  # few rows are slower than many
                self._pace.computed(_tokens(batch), started, ended)
            self._changed.notify()
        if isinstance(outputs, Exception):
            self._compute_apart(batch, outputs)
            return
        if self._observer is not None:
            self._observer(Batch(len(batch), _tokens(batch), positions, ended - started))
        self._scatter(batch, outputs)

    def _compute_apart(self, batch: Sequence[WaitingRow], error: Exception) -> None:
        """A batch failed: its requests are computed one by one, so that only the cause fails."""
        requests = list(dict.fromkeys(row.owner.request for row in batch))
        if len(requests) == 1:
            self._deliver([(requests[0], _fault_of(error, computing=True))])
            return
        for request in requests:
            own = [row for row in batch if row.owner.request is request]
            with self._changed:
                self._begin(own)
            self._compute(own)

    def _scatter(self, batch: Sequence[WaitingRow], outputs: Sequence[RowOutputs]) -> None:
        complete = list[Part]()
        with self._changed:  # several threads may have rows of one part
            for row, output in zip(batch, outputs, strict=True):
                part = row.owner
                part.outputs[row.number] = output
                part.missing -= 1
                if not part.missing and not part.request.over:
                    complete.append(part)
        self._finish(complete)

    def _finish(self, parts: Sequence[Part]) -> None:
        done = list[_Result]()
        for part in parts:
            request, prepared = part.request, part.prepared
            assert prepared is not None
            try:
                answers = self._answerer.finish(prepared, part.outputs)
            except Exception as error:
                done.append((request, _fault_of(error, computing=True)))
                continue
            cut = prepared.num_truncated or [0] * len(answers)
            found = [*zip(part.numbers, answers, cut, strict=True)]
            if self._cache is not None:
                ((number, answer, left),) = found
                tokens = sum(map(row_length, prepared.rows))
                known = Known(answer, tokens, left)
                self._cache.keep(self._number, request.instances[number], known)
            with self._changed:
                for number, answer, left in found:
                    request.answers[number], request.truncated[number] = answer, left
                request.missing -= len(found)
                if not request.missing:
                    done.append((request, request.answered()))
        self._deliver(done)

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


def _fill(request: Request, numbers: Iterable[int], known: Iterable[Known | None]) -> None:
    """Gives a request the answers that are known."""
    for number, one in zip(numbers, known, strict=True):
        if one is not None:
            request.answers[number], tokens, request.truncated[number] = one
            request.tokens += tokens
            request.missing -= 1


def _tokens(batch: Sequence[WaitingRow]) -> int:
    return sum(row.length for row in batch)


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
    trace = None if isinstance(error, UserError) else error
    _LOGGER.error("A request failed: %s", error, exc_info=trace)
    if isinstance(error, NotFiniteError):
        return RequestError(500, "the model's numbers are not finite for this request.")
    return RequestError(500, _FAILED)
