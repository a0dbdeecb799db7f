"""The lines of a text file, as inputs of a job that reads them as often as it needs."""

import functools
from collections.abc import Iterator
from pathlib import Path

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import text_lines


class TextLines:
    r"""A UTF-8 file, one input a line; only `\n` ends a line, and one line is held at a time.

    `str.splitlines` would also cut at characters inside a sentence. A byte-order mark at the
    start and `\r` at the end of a line are left out; an empty line is an empty input.

    Args:
        path: the file. It is read from its beginning by each iteration, and once by the first
            `len`, which finds a fault in its last line before the work begins.

    Raises:
        UserError: when it is read: the file is missing, empty or not UTF-8.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "lines.txt"
        >>> _ = path.write_bytes(b"one\r\n\nthree")
        >>> lines = TextLines(path)
        >>> len(lines), list(lines), list(lines)
        (3, ['one', '', 'three'], ['one', '', 'three'])
    """

    def __init__(self, path: str | Path) -> None:
        self._path = path

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        return text_lines(self._path)

    @functools.cached_property
    def _count(self) -> int:
        count = sum(1 for _ in self)
        if not count:
            raise UserError(
                f"{self._path}: holds a byte-order mark and no line; name a file with text."
            )
        return count
