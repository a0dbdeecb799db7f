"""The exact search in small blocks, of which no answer may depend."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pipelines.vectors import nearest


@contextmanager
def blocks_of(rows: int) -> Iterator[None]:
    """Inside the block so many vectors are compared at once with one query, and paired."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (
            ("BLOCK_BYTES", 4 * rows),
            ("QUERIES_AT_ONCE", 1),
            ("PAIRS_AT_ONCE", rows),
        ):
            patch.setattr(nearest, f"_{name}", value)
        yield
