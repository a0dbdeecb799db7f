"""The lines of a text file, read as often as they are needed."""

from collections.abc import Iterator
from pathlib import Path

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_input

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class TextLines:
    r"""A UTF-8 file, one input a line; only `\n` ends a line, and one line is held at a time.

    `str.splitlines` would also cut at characters inside a sentence. A byte-order mark at the
    start and `\r` at the end of a line are left out.

    Args:
        path: the file; it is read once here, so that a fault in its last line is found before
            the work begins.

    Raises:
        UserError: the file is missing, empty or not UTF-8.

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
        self._count = sum(1 for _ in self)
        if not self._count:
            raise UserError(f"{path}: holds a byte-order mark and no line; name a file with text.")

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        with open_input(self._path) as file:
            if file.read(len(_BYTE_ORDER_MARK)) != _BYTE_ORDER_MARK:
                file.seek(0)
            for number, line in enumerate(file, start=1):
                try:
                    yield line.removesuffix(b"\n").decode("utf-8").rstrip("\r")
                except UnicodeDecodeError as error:
                    raise UserError(
                        f"{self._path}: line {number} is not UTF-8; convert it."
                    ) from error
