"""Rows that wait to be computed: the one whose turn it is leaves with others of its length."""

import bisect
import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

_PADDING = 0.2  # of a batch's positions, at most
_LITTLE = 64  # positions of padding that cost less than another batch


@dataclass(eq=False, slots=True)
class WaitingRow:
    """A row that waits.

    Attributes:
        length: the positions that it takes.
        owner: whose it is.
        number: which of its owner's rows.
        turn: when it is to be computed: after so many rows.
        taken: it is in a batch, or not wanted any more.
    """

    length: int
    owner: Any
    number: int
    turn: int
    taken: bool = False


_BY_LENGTH = attrgetter("length", "turn")


@dataclass
class RowPool:
    """Rows by length and by turn.

    A row's turn is as many rows after its arrival as stand before it in its own request: a request
    of a single row passes the later rows of a long one, and no row waits for ever.

    Attributes:
        positions: of all waiting rows.

    Example:
        >>> pool = RowPool()
        >>> pool.add("long", [9, 9, 9])
        >>> pool.add("short", [9])
        >>> [(row.owner, row.number) for row in pool.take(18)]
        [('long', 0), ('short', 0)]
    """

    positions: int = 0
    _by_length: list[WaitingRow] = field(default_factory=list)
    _turns: list[tuple[int, int, WaitingRow]] = field(default_factory=list)
    _served: int = 0
    _arrivals: int = 0

    def __len__(self) -> int:
        return len(self._by_length)

    def add(self, owner: Any, lengths: Sequence[int]) -> None:
        """Lets the rows of one request wait."""
        for number, length in enumerate(lengths):
            row = WaitingRow(length, owner, number, self._served + number)
            bisect.insort(self._by_length, row, key=_BY_LENGTH)
            self._arrivals += 1
            heapq.heappush(self._turns, (row.turn, self._arrivals, row))
            self.positions += length

    def take(self, most: int) -> list[WaitingRow]:
        """Takes the row whose turn it is, and those of like length that fit beside it.

        Args:
            most: positions of the batch, padding included; a longer row is taken alone.

        Returns:
            Rows, the shortest first; none where none waits.
        """
        while self._turns and self._turns[0][2].taken:
            heapq.heappop(self._turns)
        if not self._turns:
            return []
        first, end = self._neighbours(self._place_of(self._turns[0][2]), most)
        rows = self._by_length[first:end]
        del self._by_length[first:end]
        for row in rows:
            row.taken = True
            self.positions -= row.length
        self._served += len(rows)
        return rows

    def drop(self, owner: Any) -> None:
        """Forgets the rows of a request."""
        for row in self._by_length:
            if row.owner is owner:
                row.taken = True
                self.positions -= row.length
        self._by_length = [row for row in self._by_length if not row.taken]

    def _place_of(self, row: WaitingRow) -> int:
        place = bisect.bisect_left(self._by_length, _BY_LENGTH(row), key=_BY_LENGTH)
        while self._by_length[place] is not row:
            place += 1
        return place

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
