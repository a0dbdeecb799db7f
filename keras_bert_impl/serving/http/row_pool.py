"""Rows that wait to be computed: the one whose turn it is leaves with others of its length."""

import bisect
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

_PADDING = 0.2  # of a batch's positions, at most
_LITTLE = 64  # positions of padding that cost less than another batch


@dataclass(eq=False, slots=True)
class WaitingRow:
    """A row that waits."""

    length: int
    owner: Any
    number: int
    turn: int
    taken: bool = False


_BY_LENGTH = attrgetter("length", "turn")


@dataclass
class RowPool:
    """Rows by length and by turn: the oldest leaves next, so that none waits for ever.

    Example:
        >>> pool = RowPool()
        >>> pool.add("first", [9, 2])
        >>> pool.add("second", [9, 9])
        >>> [(row.owner, row.number) for row in pool.take(18)]
        [('first', 0), ('second', 0)]
    """

    positions: int = 0
    _by_length: list[WaitingRow] = field(default_factory=list)
    _turns: deque[WaitingRow] = field(default_factory=deque)
    _arrivals: int = 0

    def __len__(self) -> int:
        return len(self._by_length)

    def add(self, owner: Any, lengths: Sequence[int]) -> None:
        for number, length in enumerate(lengths):
            row = WaitingRow(length, owner, number, self._arrivals)
            bisect.insort(self._by_length, row, key=_BY_LENGTH)
            self._turns.append(row)
            self._arrivals += 1
            self.positions += length

    def take(self, most: int) -> list[WaitingRow]:
        """Takes the row whose turn it is, and those of like length that fit beside it.

        A row of more than `most` positions is taken alone. The shortest rows come first.
        """
        if not self._turns:
            return []
        place = bisect.bisect_left(self._by_length, _BY_LENGTH(self._turns[0]), key=_BY_LENGTH)
        first, end = self._neighbours(place, most)
        rows = self._by_length[first:end]
        del self._by_length[first:end]
        for row in rows:
            row.taken = True
            self.positions -= row.length
        self._let_go()
        return rows

    def drop(self, is_unwanted: Callable[[Any], bool]) -> None:
        for row in self._by_length:
            if is_unwanted(row.owner):
                row.taken = True
                self.positions -= row.length
        self._by_length = [row for row in self._by_length if not row.taken]
        self._let_go()

    def _let_go(self) -> None:
        """The first turn is of a row that waits: an empty pool keeps no owner."""
        while self._turns and self._turns[0].taken:
            self._turns.popleft()

    def _neighbours(self, place: int, most: int) -> tuple[int, int]:
        """The stretch around a row that makes a good batch: full, with little padding."""
        rows, first, end = self._by_length, place, place + 1
        tokens = rows[place].length
        while first > 0 or end < len(rows):
            longest = rows[end - 1].length
            above = rows[end].length - longest if end < len(rows) else None
            below = longest - rows[first - 1].length if first else None
            upwards = below is None or (above is not None and above <= below)
            more = rows[end].length if upwards else rows[first - 1].length
            positions = (end - first + 1) * max(longest, more)
            padding = positions - tokens - more
            if positions > most or padding > max(_LITTLE, _PADDING * positions):
                break
            first, end, tokens = first - (not upwards), end + upwards, tokens + more
        return first, end
