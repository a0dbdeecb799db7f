"""A user's file as lines, as a text or as JSON: found, unpacked and decoded in one way for all.

Files of labels, tags, choices, questions, passages, predictions and texts for vectors are opened
here. They are plain or packed, in UTF-8 or the encoding that is said (see
`pipelines.corpora.encodings`, which also leaves out a byte-order mark), and a fault is one sentence
with the file and the line.
"""

import os
from collections.abc import Iterator
from typing import Any

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import MOST_LINE_BYTES
from keras_bert_impl.json_files import bounded_loads, fault_of_json
from pipelines.corpora import encodings
from pipelines.corpora.encodings import TextEncoding

AnyPath = str | os.PathLike[str]

_MOST_VALUES = 1 << 25  # of a JSON file; each takes about a hundred bytes, however short it is


def read_lines(
    path: AnyPath,
    encoding: TextEncoding | None = None,
    *,
    keep_ends: bool = False,
    longest: int | None = None,
) -> Iterator[tuple[int, str]]:
    r"""The lines of a file with their numbers, from 1.

    Only `\n` ends a line: `str.splitlines` would also cut at characters inside a sentence, such as
    U+2028. A `\r` in front of it belongs to the line's end, too.

    Example:
        >>> import gzip, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "lines.txt.gz")
        >>> with gzip.open(path, "wb") as file:
        ...     _ = file.write(b"\xef\xbb\xbfone\r\n\nthree")
        >>> list(read_lines(path))
        [(1, 'one'), (2, ''), (3, 'three')]
    """
    name = os.fspath(path)
    for block in encodings.read_line_blocks(name, longest=longest, encoding=encoding):
        try:
            text = block.text.decode("utf-8")
        except UnicodeDecodeError as error:
            # Before its lines are read: another encoding makes other faults as well.
            number = block.first_line + block.text.count(b"\n", 0, error.start)
            raise _not_utf8(name, f"line {number}", encoding) from error
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()  # nothing stands after a block's last line end
        each = (f"{line}\n" if keep_ends else line.rstrip("\r") for line in lines)
        yield from enumerate(each, block.first_line)


def _not_utf8(path: AnyPath, where: str, encoding: TextEncoding | None) -> UserError:
    return UserError(f"{path}: {where} is not UTF-8; {encodings.remedy_of_encoding(encoding)}.")


def read_text(
    path: AnyPath, encoding: TextEncoding | None = None, most_bytes: int = MOST_LINE_BYTES
) -> str:
    """The text of a file, one document, with its blanks and line ends as they are."""
    content = encodings.read_whole(os.fspath(path), most_bytes, encoding)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_utf8(path, f"byte {error.start}", encoding) from error
    return encoding.composed(text) if encoding else text


def read_json(path: AnyPath, wanted: str, encoding: TextEncoding | None = None) -> Any:
    """Reads a JSON file; `wanted` says in the message what it should be."""
    content = encodings.read_whole(os.fspath(path), encoding=encoding)
    try:
        if sum(map(content.count, (b"{", b"[", b","))) > _MOST_VALUES:
            raise MemoryError
        return bounded_loads(content)
    except (ValueError, RecursionError) as error:
        of_bytes = isinstance(error, UnicodeDecodeError)
        remedy = encodings.remedy_of_encoding(encoding) if of_bytes else "fix it"
        raise UserError(f"{path}: {fault_of_json(error)}; {remedy}, or name {wanted}.") from error
    except MemoryError as error:
        raise UserError(
            f"{path}: the memory does not suffice to read it; cut it into several files."
        ) from error
