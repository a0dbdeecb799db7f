"""What waits: requests and their parts, in two lines, and how fast they are answered."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from keras_bert_impl.serving.answerer import Answer, Instance, Prepared, Row
from keras_bert_impl.serving.http.row_pool import RowPool

_SMALL, _SMALL_CHARACTERS = 32, 16_384  # instances of a part, and of a small request, at most
_BESIDE_A_TEXT = 8  # as many characters as [CLS], [SEP] and a prompt stand for
_MOST_TO_LEARN = 1024  # characters of a part
_OF_BEFORE = 0.9  # the measured speed changes slowly


class Answered(NamedTuple):
    """Answers, and the tokens of all their rows, without padding."""

    answers: list[Answer]
    tokens: int
    num_truncated: Sequence[int] = ()


@dataclass(eq=False, slots=True)
class Request:
    """A request from its arrival to its answers.

    Attributes:
        instances: what is asked.
        loop: of the client that waits for
        answer: its answers.
        answers: by instance, and of each
        truncated: the tokens that were not read.
        parts: those that nobody has taken yet.
        size: its characters, of what had no answer when it came.
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
    parts: deque["Part"] = field(default_factory=deque)
    size: int = 0
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

    def divide(self) -> None:
        """Divides what has no answer into parts; a single instance may be longer than a part."""
        numbers = [number for number, answer in enumerate(self.answers) if answer is None]
        self.parts.clear()
        self.size, part = 0, Part(self, [], 0)
        for number in numbers:
            size = size_of(self.instances[number])
            is_full = len(part.numbers) == _SMALL or part.characters + size > _SMALL_CHARACTERS
            if not part.numbers or is_full:
                part = Part(self, [], 0)
                self.parts.append(part)
            part.numbers.append(number)
            part.characters += size
            self.size += size
        self.characters, self.asked, self.missing = self.size, len(numbers), len(numbers)
        self.is_small = len(self.parts) < 2 and self.size <= _SMALL_CHARACTERS


@dataclass(eq=False, slots=True)
class Part:
    """Instances of a request that are prepared and finished at once."""

    request: Request
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
class Line:
    """The small requests, or the large ones.

    Attributes:
        requests: those that are not over, by what their clients wait for.
        unprepared: those that have parts which nobody has taken, in their turns.
        characters: of what is not prepared.
        rows: of what is.
        counted: what they take of the instances that may wait.
        preparing: how many threads prepare parts of them.
    """

    requests: dict[asyncio.Future[Answered], Request] = field(default_factory=dict)
    unprepared: deque[Request] = field(default_factory=deque)
    characters: int = 0
    rows: RowPool = field(default_factory=RowPool)
    counted: int = 0
    preparing: int = 0

    def add(self, request: Request) -> None:
        self.requests[request.answer] = request
        self.characters += request.characters
        self.counted += request.counted
        self.unprepared.append(request)

    def take_parts(self, may_take: Callable[[Part], bool]) -> list[Part]:
        """Some parts, about as many as fill a batch; the next of their requests line up again."""
        taken = list[Part]()
        count = characters = 0
        for request in [*self.unprepared]:
            if count >= _SMALL or characters >= _SMALL_CHARACTERS:
                break
            if not may_take(request.parts[0]):
                continue
            part = request.parts.popleft()
            self.unprepared.remove(request)
            taken.append(part)
            count, characters = count + len(part.numbers), characters + part.characters
            if request.parts:
                self.unprepared.append(request)
                break
        return taken

    def leave(self, part: Part) -> None:
        if not part.request.over:
            part.request.characters -= part.characters
            self.characters -= part.characters

    def drop(self, request: Request) -> None:
        self.requests.pop(request.answer, None)
        self.characters -= request.characters
        self.counted -= request.counted
        if request.parts:
            with contextlib.suppress(ValueError):
                self.unprepared.remove(request)
        if request.tokens_left:
            self.rows.drop(lambda part: part.request is request)


@dataclass
class Pace:
    """How fast it goes, by the last batches."""

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


def size_of(instance: Instance) -> int:
    """About how many characters an instance has, with what a model puts beside them."""
    return _BESIDE_A_TEXT + sum(map(_characters, instance.values()))


def _characters(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(_characters, value))
    return len(value) if isinstance(value, str) else 0
