"""Reading documents from files: plain text or JSON lines, packed or not."""

import bz2
import gzip
import io
import json
import lzma
from collections.abc import Iterator
from glob import glob
from typing import IO, cast

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import open_input

_UNPACKERS = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


def expand_patterns(patterns: list[str]) -> list[str]:
    """Gives the files that paths and glob patterns name, in a fixed order, each once.

    Raises:
        UserError: a pattern names no file.
    """
    files: dict[str, None] = {}
    for pattern in patterns:
        found = sorted(glob(pattern, recursive=True))
        if not found:
            raise UserError(f"{pattern}: no such file; check the path.")
        files |= dict.fromkeys(found)
    return list(files)


def open_text(path: str) -> IO[str]:
    """Opens a UTF-8 file for reading lines; .gz, .xz and .bz2 are unpacked on the way."""
    raw = open_input(path)
    for suffix, unpack in _UNPACKERS.items():
        if path.endswith(suffix):
            raw = cast("IO[bytes]", unpack(raw))
    return io.TextIOWrapper(raw, encoding="utf-8", errors="replace", newline="\n")


def read_documents(path: str, text_field: str = "text") -> Iterator[list[str]]:
    """Gives the documents of a file as lists of paragraphs.

    A name with `.jsonl` or `.json` in it holds one JSON object a line; any other file is plain text
    with empty lines between documents.
    """
    with open_text(path) as file:
        if ".json" in path:
            for number, line in enumerate(file, 1):
                try:
                    yield json.loads(line)[text_field].split("\n")
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    raise UserError(
                        f"{path}: line {number} is no JSON object with a text field '{text_field}'; "
                        "name the field with --text_field or mend the line."
                    ) from error
            return
        paragraphs: list[str] = []
        for line in file:
            if line.strip():
                paragraphs.append(line)
            elif paragraphs:
                yield paragraphs
                paragraphs = []
        if paragraphs:
            yield paragraphs
