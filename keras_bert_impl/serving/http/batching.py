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
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
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
from keras_bert_impl.serving.http.answer_cache import AnswerCache, Known
from keras_bert_impl.serving.http.bodies import RequestError, bad_request
from keras_bert_impl.serving.http.row_pool import RowPool, WaitingRow

_LOGGER = logging.getLogger(__name__)

_FAILED = "the model failed at this request; the server's log says why."
_SMALL, _SMALL_CHARACTERS = 32, 16_384  # instances of a part, and of a small request, at most
_BATCHES_READY = 8  # of so many batches rows of large requests are made ahead, to have like lengths
_BATCHES_OF_SMALL = 3  # as much is computed before a batch of a large request that waits
_PARTS_OF_QUEUE = 4  # a large request counts for one of them at most, and one is not for them
_LARGE = 1 << 20  # characters: cutting them into tokens takes up to fifty times as many bytes
_ONE_LARGE = threading.Lock()  # of all models, so that such requests do not add up
_BESIDE_A_TEXT = 8  # as many characters as [CLS], [SEP] and a prompt stand for
_MOST_TO_LEARN = 1024  # characters of a part
_OF_BEFORE = 0.9  # the measured speed changes slowly
_BATCHES_TO_KNOW = 20  # the first ones may be slow: an engine prepares for each length
_NUMBERS = itertools.count()  # an open model is not another one, nor another version
_clock = time.perf_counter


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
        answers: by instance, and of each
        truncated: the tokens that were not read.
        parts: those that nobody has taken yet.
        characters: of the parts that are not prepared.
        tokens_left: of its rows that are not computed.
        tokens: of all its rows.
        counted: what it takes of the instances that may wait.
        asked: how many instances had no answer when it came.
        missing: how many have none now.
        over: the client waits no more.
    """

    instances: Sequence[Instance]
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[Answered]
    answers: list[Any]
    truncated: list[int]
    parts: deque["_Part"] = field(default_factory=deque)
    characters: int = 0
    tokens_left: int = 0
    tokens: int = 0
    counted: int = 0
    asked: int = 0
    missing: int = 0
    over: bool = False
    is_small: bool = True

    def answered(self) -> Answered:
        return Answered(self.answers, self.tokens, self.truncated)


@dataclass(eq=False, slots=True)
class _Part:
    """Instances of a request that are prepared and finished at once.

    Attributes:
        numbers: which of the request's instances.
        prepared: their rows, as soon as they are made.
        outputs: of the rows.
        missing: how many rows are not computed yet.
    """

    request: _Request
    numbers: list[int]
    characters: int
    prepared: Prepared | None = None
    outputs: list[Any] = field(default_factory=list)
    missing: int = 0

    @property
    def instances(self) -> list[Instance]:
        return [self.request.instances[number] for number in self.numbers]

    def row(self, number: int) -> Row:
        assert self.prepared is not None
        return self.prepared.rows[number]


@dataclass(eq=False)
class _Line:
    """The small requests, or the large ones.

    Attributes:
        requests: those that are not over.
        parts: of each request the one that is prepared next, where there is one.
        characters: of what is not prepared.
        rows: of what is.
        counted: what they take of the instances that may wait.
    """

    requests: set[_Request] = field(default_factory=set)
    parts: deque[_Part] = field(default_factory=deque)
    characters: int = 0
    rows: RowPool = field(default_factory=RowPool)
    counted: int = 0

    def add(self, request: _Request) -> None:
        self.requests.add(request)
        self.characters += request.characters
        self.counted += request.counted
        self.parts.append(request.parts.popleft())

    def take_parts(self) -> list[_Part]:
        """Some parts, about as many as fill a batch; the next of their requests line up again."""
        taken = list[_Part]()
        count = 0
        while self.parts and count < _SMALL:
            part = self.parts.popleft()
            if part.request.over:
                continue
            taken.append(part)
            count += len(part.numbers)
            if part.request.parts:
                self.parts.append(part.request.parts.popleft())
                break
        return taken

    def drop(self, request: _Request) -> None:
        """Forgets a request that is over."""
        self.requests.discard(request)
        self.characters -= request.characters
        self.counted -= request.counted
        if request.tokens_left:
            self.rows.drop(lambda part: part.request is request)


@dataclass
class _Pace:
    """How fast it goes, by the last batches.

    Attributes:
        batches: how many were measured.
    """

    batches: int = 0
    _prepared: float = 0.0
    _characters: float = 0.0
    _tokens: float = 0.0
    _seconds: float = 0.0
    _ended: float = 0.0

    def prepared(self, tokens: int, characters: int) -> None:
        """Learns from a part; a long text, of which little may be read, counts as a short one."""
        weight = min(1.0, _MOST_TO_LEARN / characters)
        self._prepared = self._prepared * _OF_BEFORE + tokens * weight
        self._characters = self._characters * _OF_BEFORE + characters * weight

    def computed(self, tokens: int, started: float, ended: float) -> None:
        """Learns from a batch; what others computed at the same time is counted once."""
        self.batches += 1
        self._tokens = self._tokens * _OF_BEFORE + tokens
        self._ended, before = max(ended, self._ended), max(started, self._ended)
        self._seconds = self._seconds * _OF_BEFORE + max(0.0, ended - before)

    def tokens(self, characters: int) -> float:
        """About how many tokens texts have that are not prepared."""
        return characters * (self._prepared / self._characters if self._characters else 0.25)

    def seconds(self, tokens: float) -> float:
        """How long so many tokens take, with the padding that comes with them."""
        return tokens * self._seconds / self._tokens if self.batches else 0.0


_Result = tuple[_Request, Answered | Exception]


class Batcher:
    """Answers requests with one answerer, many at a time.

    Args:
        most_waiting: how many instances may wait; a request of more is taken where none waits. A
            large request counts for a quarter of them at most, and a quarter is for small ones.
        cache: has answers that are given at once, and keeps others.
    """

    def __init__(
        self,
        answerer: Answerer,
        most_waiting: int,
        observer: Observer | None = None,
        most_seconds: float = math.inf,
        cache: AnswerCache | None = None,
    ) -> None:
        self._answerer, self._most, self._observer = answerer, most_waiting, observer
        self._most_seconds, self._cache, self._number = most_seconds, cache, next(_NUMBERS)
        self._share = max(1, most_waiting // _PARTS_OF_QUEUE)
        self._changed = threading.Condition()
        self._small, self._large = _Line(), _Line()
        self._pace = _Pace()
        self._computing = self._computing_tokens = self._preparing = self._waiting = 0
        self._small_computed = 0  # tokens, since a batch of large requests
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
        request = self._request_of(instances, self._cache)
        if request.missing:
            self._accept(request)
            request.answer.add_done_callback(lambda _: self._forget(request))
        else:
            request.answer.set_result(request.answered())
        return request.answer

    def retry_after(self, instances: Sequence[Instance]) -> int:
        """In how many seconds instances would be answered if they were asked now."""
        with self._changed:
            return self._wait(self._request_of(instances))

    def close(self) -> None:
        """Answers what waits, and ends the threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _request_of(
        self, instances: Sequence[Instance], cache: AnswerCache | None = None
    ) -> _Request:
        loop, count = asyncio.get_running_loop(), len(instances)
        answers, truncated = list[Any]([None] * count), [0] * count
        request = _Request(instances, loop, loop.create_future(), answers, truncated)
        for number, one in enumerate(cache.find(self._number, instances) if cache else ()):
            if one is not None:
                answers[number], tokens, truncated[number] = one
                request.tokens += tokens
        _divide(request, [number for number, answer in enumerate(answers) if answer is None])
        count = request.missing
        request.counted = count if request.is_small else min(count, self._share)
        return request

    def _line_of(self, request: _Request) -> _Line:
        return self._small if request.is_small else self._large

    def _accept(self, request: _Request) -> None:
        with self._changed:
            if self._closed:
                raise RequestError(503, "the server is about to stop; ask again.", retry_after=1)
            small, large, own = self._small.counted, self._large.counted, request.counted
            too_many = small + large + own > self._most
            too_many |= not request.is_small and large + own > self._most - self._share
            known = self._pace.batches >= _BATCHES_TO_KNOW
            too_long = known and self._seconds_until(request) > self._most_seconds
            if self._waiting and (too_many or too_long):
                raise RequestError(
                    429, "too many requests wait; ask again later.", retry_after=self._wait(request)
                )
            self._waiting += request.asked
            self._line_of(request).add(request)
            self._changed.notify()

    def _seconds_until(self, request: _Request) -> float:
        """In how many seconds a request would be answered: it and what is computed before it."""
        own, others, small = self._tokens_left(request), self._large.requests, self._small
        before = small.rows.positions + self._pace.tokens(small.characters)
        before += self._computing_tokens / 2
        if not request.is_small:
            before += sum(min(self._tokens_left(other), own) for other in others)
        elif others:
            before += before / _BATCHES_OF_SMALL
        return self._pace.seconds(own + before)

    def _tokens_left(self, request: _Request) -> float:
        return request.tokens_left + self._pace.tokens(request.characters)

    def _wait(self, request: _Request) -> int:
        """In how many seconds a client should ask again."""
        return max(1, round(self._seconds_until(request)))

    def _forget(self, request: _Request) -> None:
        if not request.over:
            with self._changed:
                if not request.over:
                    self._end(request)

    def _end(self, request: _Request) -> None:
        request.over = True
        self._waiting -= request.asked
        self._line_of(request).drop(request)
        if self._closed and not self._waiting:
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                while (task := self._task()) is None:
                    if self._closed and not self._waiting:
                        return
                    self._changed.wait()
                self._changed.notify()  # there may be more to do
            task()

    def _task(self) -> Callable[[], None] | None:
        """What is best done next: a full batch, more rows, or the rows that there are."""
        budget = self._answerer.tokens_at_once
        free = self._answerer.batches_at_once - self._computing
        small, large = self._small, self._large
        could_compute = free and small.rows.positions + large.rows.positions >= budget
        # One thread prepares small requests whatever else there is to do.
        if small.parts and not (could_compute and self._preparing):
            self._preparing += 1
            return partial(self._prepare, small, small.take_parts())
        if large.parts and not could_compute and large.rows.positions < _BATCHES_READY * budget:
            return partial(self._prepare, large, large.take_parts())
        if free and (small.rows or large.rows):
            return partial(self._compute, self._take_rows(budget, free))
        return None

    def _prepare(self, line: _Line, parts: Sequence[_Part]) -> None:
        done, prepared = list[_Result](), list[_Part]()
        for part in parts:
            try:
                prepared += self._prepared(part)
            except Exception as error:
                done.append((part.request, self._fault_of_texts(part.request, error)))
        with self._changed:
            self._preparing -= line is self._small
            for part in prepared:
                self._add_rows(line, part)
            self._changed.notify()
        self._finish([part for part in prepared if not part.missing])
        self._deliver(done)

    def _prepared(self, part: _Part) -> list[_Part]:
        """A part with its rows; divided where it must be known whose rows they are."""
        part.prepared = self._cut(part.instances)
        if self._cache is None or len(part.numbers) in (1, len(part.prepared.rows)):
            return [part]
        asked = zip(part.numbers, part.instances, strict=True)
        return [_Part(part.request, [at], _size(one), self._cut([one])) for at, one in asked]

    def _cut(self, instances: Sequence[Instance]) -> Prepared:
        is_large = sum(map(_size, instances)) > _LARGE
        with _ONE_LARGE if is_large else contextlib.nullcontext():
            return self._answerer.prepare(instances)

    def _fault_of_texts(self, request: _Request, error: Exception) -> RequestError:
        """What is wrong with a request of which a part cannot be prepared."""
        if isinstance(error, UserError):
            try:  # the sentence counts the instances, of all parts
                self._cut(request.instances)
            except UserError as whole:
                error = whole
        return _fault_of(error)

    def _add_rows(self, line: _Line, part: _Part) -> None:
        assert part.prepared is not None
        request, lengths = part.request, [row_length(row) for row in part.prepared.rows]
        part.outputs, part.missing, tokens = [None] * len(lengths), len(lengths), sum(lengths)
        self._pace.prepared(tokens, part.characters)
        if not request.over:
            request.tokens += tokens
            request.tokens_left += tokens
            request.characters -= part.characters
            line.characters -= part.characters
            line.rows.add(part, lengths)

    def _take_rows(self, budget: int, free: int) -> list[WaitingRow]:
        """The next batch: of small requests, but now and then of large ones."""
        small, large = self._small, self._large
        is_due = bool(large.rows) and self._small_computed >= _BATCHES_OF_SMALL * budget
        is_small = bool(small.rows) and not is_due
        rows = small.rows if is_small else large.rows
        # Few rows are divided among those who could compute them.
        share = budget if free == 1 else -(-rows.positions // free)
        batch = rows.take(min(budget, share))
        for row in batch:
            row.owner.request.tokens_left -= row.length
        self._begin(batch)
        # Counted while a large request waits.
        self._small_computed = (
            self._small_computed + _tokens(batch) if is_small and large.rows else 0
        )
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
        complete = list[_Part]()
        with self._changed:  # several threads may have rows of one part
            for row, output in zip(batch, outputs, strict=True):
                part = row.owner
                part.outputs[row.number] = output
                part.missing -= 1
                if not part.missing and not part.request.over:
                    complete.append(part)
        self._finish(complete)

    def _finish(self, parts: Sequence[_Part]) -> None:
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
                lengths = [row_length(row) for row in prepared.rows]
                tokens = lengths if len(found) > 1 else [sum(lengths)]
                for (number, answer, left), count in zip(found, tokens, strict=True):
                    asked = request.instances[number]
                    self._cache.keep(self._number, asked, Known(answer, count, left))
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


def _divide(request: _Request, numbers: Sequence[int]) -> None:
    """Divides some instances of a request into parts; a single one may be longer than a part."""
    part = _Part(request, [], 0)
    for number in numbers:
        size = _size(request.instances[number])
        is_full = len(part.numbers) == _SMALL or part.characters + size > _SMALL_CHARACTERS
        if not part.numbers or is_full:
            part = _Part(request, [], 0)
            request.parts.append(part)
        part.numbers.append(number)
        part.characters += size
        request.characters += size
    request.asked = request.missing = len(numbers)
    request.is_small = len(request.parts) < 2 and request.characters <= _SMALL_CHARACTERS


def _tokens(batch: Sequence[WaitingRow]) -> int:
    return sum(row.length for row in batch)


def _size(instance: Instance) -> int:
    """About how many characters an instance has, with what a model puts beside them."""
    return _BESIDE_A_TEXT + sum(map(_characters, instance.values()))


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
