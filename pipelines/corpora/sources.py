"""Finds the sources of text that a user names, and recognises the form of each.

A table, a page of HTML or JSON lines read as text give names of fields, tags and braces as words,
without any error: one look at the first line warns of them. In doubt it is prose.
"""

import glob
import logging
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import is_there, real_path
from pipelines.corpora.encodings import UTF_8, TextEncoding
from pipelines.corpora.unpacking import SAMPLE_BYTES, beginning_of_text

_LOGGER = logging.getLogger(__name__)

Form = Literal["text", "json_lines", "wikiextractor", "tfds"]
_DATA_SET = "tfds:"
_TABLE = re.compile(r"\.(csv|tsv|tab)(\.(gz|xz|bz2))?$", re.IGNORECASE)
_EXTRACT = "take the text out of it first (plain text and JSON lines are read)"
_JSON_ARRAY = re.compile(rb"\[\s*\{")

Kind = Literal["JSON", "CSV", "HTML"]

_MARKUP = re.compile(r"<(!doctype html|html|\?xml|mediawiki|doc |(head|body|div|table)[ >])", re.I)
_JSON_BEGINS = re.compile(r'\{\s*"(?:[^"\\]|\\.)*"\s*:|\[\s*(?:\{|$)')
# A header names its columns: each begins with a letter, and no blank follows a separator.
_NAME = r'"?[^\W\d][\w.#-]*(?: [\w.#-]+)?"?'
_HEADER = re.compile(rf"{_NAME}(?:([,;\t|]){_NAME})(?:\1{_NAME})*")
_MAGIC = frozenset("*?[")


class Source(NamedTuple):
    """One file or data set."""

    name: str
    form: Form


def kind_of(sample: str) -> Kind | None:
    r"""What a text looks like by its first line that is not empty; None for plain text.

    Example:
        >>> print(kind_of("One sentence, here.\n"))
        None
        >>> kind_of('{"text": "One."}\n'), kind_of("id,text\n7,fine\n"), kind_of("<html>\n")
        ('JSON', 'CSV', 'HTML')
    """
    text = sample.removeprefix("\ufeff").lstrip()
    line = text.partition("\n")[0].rstrip()
    if _MARKUP.match(line):
        return "HTML"
    if _JSON_BEGINS.match(line):
        return "JSON"
    return "CSV" if _HEADER.fullmatch(line) else None


def other_kind(path: str, start: bytes, remedy: str, told: set[str]) -> Kind | None:
    """What a file that is read as plain text looks like; warns of the first file of each kind."""
    kind = kind_of(start[:SAMPLE_BYTES].decode("utf-8", "ignore"))
    if kind is not None and kind not in told:
        told.add(kind)
        _LOGGER.warning(
            "%s: begins like %s and is read as plain text, fields and tags and all; %s.",
            *(path, kind, remedy),
        )
    return kind


def find_sources(
    patterns: Sequence[str], form: Form | None = None, encoding: TextEncoding = UTF_8
) -> list[Source]:
    """Finds the sources that are meant, in a fixed order, each once; without empty files.

    Args:
        patterns: paths, glob patterns, folders (all files below them), or "tfds:NAME[:SPLIT]".

    Example:
        >>> find_sources(["tfds:wiki40b/ko:test"])
        [Source(name='wiki40b/ko:test', form='tfds')]
    """
    if not patterns:
        raise UserError("`input_file` names no file; name at least one.")
    found: list[tuple[str, bool]] = []  # name, whether it is a data set
    for pattern in patterns:
        if pattern.startswith(_DATA_SET):
            found.append((pattern.removeprefix(_DATA_SET), True))
        else:
            found += [(path, False) for path in expand_patterns([pattern])]
    kept = {*with_content([name for name, is_data_set in found if not is_data_set])}
    sources: dict[Source, None] = {}
    told: set[str] = set()
    for name, is_data_set in found:
        if is_data_set:
            sources[Source(name, "tfds")] = None
        elif name in kept:
            sources[Source(name, form or _form_of(name, told, encoding))] = None
    return list(sources)


def packed_size(sources: Iterable[Source]) -> int | None:
    """Bytes of all sources on the disk; None where one of them is a data set or a pipe."""
    total = 0
    for name, form in sources:
        if form == "tfds" or not Path(name).is_file():
            return None
        total += Path(name).stat().st_size
    return total


def expand_patterns(patterns: Sequence[str]) -> list[str]:
    """Gives the files that paths, folders and glob patterns name, in a fixed order, each once."""
    files: dict[str, None] = {}
    for pattern in patterns:
        found = [Path(name) for name in match_files(pattern)]
        below = [file for path in found if is_there(path) for file in _files_below(path)]
        if not below:
            raise UserError(f"{pattern}: no such file; check the path.")
        files |= dict.fromkeys(below)
    return list(files)


def refuse_output_among_input(
    inputs: Iterable[str], outputs: Iterable[str | os.PathLike[str]], parameter: str
) -> None:
    """Refuses to write over what is read: a text, or an earlier run's output taken for one."""
    taken = {real_path(Path(path)) for path in outputs}
    for name in inputs:
        if real_path(Path(name)) in taken:
            raise UserError(
                f"{name}: is input, but the output would take its place; name another "
                f"`{parameter}`, or leave the file out of `input_file`."
            )


def _files_below(path: Path) -> list[str]:
    if not path.is_dir():
        return [str(path)]
    below = (file for file in path.rglob("*") if file.is_file())
    return sorted(str(file) for file in below if not _is_hidden(file.relative_to(path)))


def _is_hidden(path: Path) -> bool:
    """Whether a file or a folder on the way to it is hidden: half written, or work in progress."""
    return any(part.startswith(".") for part in path.parts)


def _form_of(path: str, told: set[str], encoding: TextEncoding) -> Form:
    """The form of a file; what is read as plain text and looks like something else is noted."""
    if _TABLE.search(path):
        raise UserError(
            f"{path}: is a table, and its header and all its cells would be read as text; write "
            "its texts as JSON lines, or, if it is plain text, let its name end in .txt."
        )
    start = beginning_of_text(path, encoding)
    if start.startswith(b"<doc "):
        return "wikiextractor"
    if _JSON_ARRAY.match(start):
        raise UserError(f"{path}: is a JSON array; write one object a line (jq -c '.[]').")
    if start.startswith(b"{"):
        return "json_lines"
    other_kind(path, start, _EXTRACT, told)
    return "text"


def has_magic(pattern: str) -> bool:
    """Whether a name is a pattern."""
    return bool(_MAGIC & set(pattern))


def match_files(pattern: str) -> list[str]:
    """The files that match a name or glob, sorted; the name of a file is given back as it is.

    Hidden files match only where the pattern itself has the dot, as in a shell.

    Args:
        pattern: a path, in which `*`, `?`, `[...]` and `**` may stand.
    """
    if not has_magic(pattern) or is_there(pattern):  # "[" may be part of it
        return [pattern]
    # Not `Path.glob`: there `*` also matches hidden files, which are half written.
    return sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207


def with_content(files: list[str]) -> list[str]:
    """Passes over empty files, unless all are: a splitter leaves some where documents are few."""
    there = {name: Path(name) for name in files if is_there(name)}
    empty = {name for name, path in there.items() if path.is_file() and not path.stat().st_size}
    if empty.issuperset(files):
        return files
    for path in sorted(empty):
        _LOGGER.info("%s: is empty and left out", path)
    return [path for path in files if path not in empty]
