"""Finds the sources of text that a user names, and recognises the form of each."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from keras_bert_impl.errors import UserError
from keras_bert_impl.files import is_there, real_path
from pipelines.corpora.encodings import UTF_8, TextEncoding
from pipelines.corpora.text_kind import OtherKinds
from pipelines.corpora.unpacking import beginning_of_text
from pipelines.records.paths import match_files, with_content

Form = Literal["text", "json_lines", "wikiextractor", "tfds"]
FORMS = ("auto", "text", "json_lines", "wikiextractor", "tfds")
_DATA_SET = "tfds:"
_TABLE = re.compile(r"\.(csv|tsv|tab)(\.(gz|xz|bz2))?$", re.IGNORECASE)
_EXTRACT = (
    "take the text out of it first (plain text and JSON lines are read), or give "
    "`input_format=text` if all of it is meant"
)
_JSON_ARRAY = re.compile(rb"\[\s*\{")


class Source(NamedTuple):
    """One file or data set.

    Attributes:
        name: the file's path; for a data set its name and split ("wiki40b/ko:train").
        form: how the text is stored in it.
    """

    name: str
    form: Form


def find_sources(
    patterns: Sequence[str], form: str = "auto", encoding: TextEncoding = UTF_8
) -> list[Source]:
    """Finds the sources that are meant, in a fixed order, each once; without empty files.

    Args:
        patterns: paths, glob patterns, folders (all files below them), or "tfds:NAME[:SPLIT]".
        form: one of `FORMS`; "auto" looks at the beginning of each file.
        encoding: how their text stands in bytes.

    Example:
        >>> find_sources(["tfds:wiki40b/ko:test"])
        [Source(name='wiki40b/ko:test', form='tfds')]
    """
    if not patterns:
        raise UserError("`input_file` names no file; name at least one.")
    found: list[tuple[str, bool]] = []  # name, whether it is a data set
    for pattern in patterns:
        if form == "tfds" or pattern.startswith(_DATA_SET):
            found.append((pattern.removeprefix(_DATA_SET), True))
        else:
            found += [(path, False) for path in expand_patterns([pattern])]
    kept = {*with_content([name for name, is_data_set in found if not is_data_set])}
    sources: dict[Source, None] = {}
    others = OtherKinds(_EXTRACT)
    for name, is_data_set in found:
        if is_data_set:
            sources[Source(name, "tfds")] = None
        elif name in kept:
            found_form = _form_of(name, others, encoding) if form == "auto" else form
            sources[Source(name, found_form)] = None  # type: ignore[arg-type]
    others.warn()
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
    """Refuses to write over what is read: a user's text, or an earlier run's output taken for it.

    Example:
        >>> refuse_output_among_input(["text.txt"], ["./text.txt"], "output_file")
        Traceback (most recent call last):
        ...
        keras_bert_impl.errors.UserError: text.txt: is input, but the output would take its place; \
name another `output_file`, or leave the file out of `input_file`.
    """
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


def _form_of(path: str, others: OtherKinds, encoding: TextEncoding) -> Form:
    """The form of a file; what is read as plain text and looks like something else is noted."""
    if _TABLE.search(path):
        raise UserError(
            f"{path}: is a table, and its header and all its cells would be read as text; write "
            "its texts as JSON lines, or give `input_format=text` to read its lines as they are."
        )
    start = beginning_of_text(path, encoding)
    if start.startswith(b"<doc "):
        return "wikiextractor"
    if _JSON_ARRAY.match(start):
        raise UserError(f"{path}: is a JSON array; write one object a line (jq -c '.[]').")
    if start.startswith(b"{"):
        return "json_lines"
    others.look(path, start)
    return "text"
