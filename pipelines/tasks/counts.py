"""What is said of a file before it is used: how many rows are so, and which is the first."""

import logging
from pathlib import Path

_LOGGER = logging.getLogger(__name__)


class Counted:
    """Rows of a file with something in common.

    Example:
        >>> empty = Counted()
        >>> empty.add("on line 3")
        >>> empty.add("on line 7")
        >>> empty.count, empty.first
        (2, 'on line 3')
    """

    def __init__(self) -> None:
        self.count, self.first = 0, ""

    def add(self, place: str) -> None:
        """Counts a row that stands at a place of its file."""
        self.first = self.first or place
        self.count += 1

    def warn(self, path: str | Path, what: str) -> None:
        """Says so in one line, where there are any; `what` they are, and what is done."""
        if self.count:
            _LOGGER.warning("%s: %s: %d, the first %s.", path, what, self.count, self.first)
