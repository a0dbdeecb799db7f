"""Reads text collections as documents: paragraphs, and None where a document ends.

Plain text, JSON lines, WikiExtractor's output and TFDS data sets all become the same stream, block
by block, so that blocks can be worked on by several processes. What `split_sentences` writes from
it is read for pre-training by `pretraining_data.documents`.

A table, a page of HTML or JSON lines read as text give names of fields, tags and braces as words,
without any error: one look at the first line warns of them. In doubt it is prose.
"""

import glob
import html
import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from keras_bert_impl.errors import UserError
from keras_bert_impl.errors import reading as file_reading
from keras_bert_impl.files import is_special, is_there, real_path
from keras_bert_impl.json_files import bounded_loads, fault_of_json, json_text
from keras_bert_impl.options import Options, nested, option
from keras_bert_impl.tokenization.reference import as_text
from pipelines.corpora import encodings
from pipelines.corpora.encodings import UTF_8, TextEncoding
from pipelines.corpora.sentences import joined_lines

_LOGGER = logging.getLogger(__name__)

Form = Literal["text", "json_lines", "wikiextractor", "tfds"]
TFDS = "tfds:"
_TABLE = re.compile(r"\.(csv|tsv|tab)(\.(gz|xz|bz2))?$", re.IGNORECASE)
_EXTRACT = "take the text out of it first (plain text and JSON lines are read)"

Kind = Literal["JSON", "CSV", "HTML"]

_MARKUP = re.compile(r"<(!doctype html|html|\?xml|mediawiki|doc |(head|body|div|table)[ >])", re.I)
# Perhaps a broken object, which is refused with its line: a first key, or a line that it fills.
_JSON_BEGINS = re.compile(r"""\[\s*\{|\{\s*(?:"(?:[^"\\]|\\.)*"\s*:|(?:["'].*)?\}\s*?$)""", re.M)
# A header names its columns: each begins with a letter, and no blank follows a separator.
_NAME = r'"?[^\W\d][\w.#-]*(?: [\w.#-]+)?"?'
_HEADER = re.compile(rf"{_NAME}(?:([,;\t|]){_NAME})(?:\1{_NAME})*")
_MAGIC = frozenset("*?[")

EMPTY_LINE = re.compile(rb"\n[ \t\r\f\v]*\n")
"""What ends a document of plain text, with the line's end before it."""


class TextSource(NamedTuple):
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
    if _JSON_BEGINS.match(text):
        return "JSON"
    return "CSV" if _HEADER.fullmatch(line) else None


def other_kind(path: str, start: bytes, remedy: str, warned: set[str]) -> Kind | None:
    """What a file that is read as plain text looks like; warns of the first file of each kind."""
    kind = kind_of(start[: encodings.SAMPLE_BYTES].decode("utf-8", "ignore"))
    if kind is not None and kind not in warned:
        warned.add(kind)
        _LOGGER.warning(
            "%s: begins like %s and is read as plain text, fields and tags and all; %s.",
            *(path, kind, remedy),
        )
    return kind


def find_sources(
    patterns: Sequence[str], form: Form | None = None, encoding: TextEncoding = UTF_8
) -> list[TextSource]:
    """Finds what paths, globs, folders or tfds:NAME[:SPLIT] mean, in a fixed order, each once."""
    if not patterns:
        raise UserError("`input_file` names no file; name at least one.")
    names: dict[str, None] = {}
    for pattern in patterns:
        own = [pattern] if pattern.startswith(TFDS) else expand_patterns([pattern])
        names |= dict.fromkeys(own)
    kept = {*with_content([name for name in names if not name.startswith(TFDS)])}
    warned = set[str]()
    return [
        TextSource(name.removeprefix(TFDS), "tfds")
        if name.startswith(TFDS)
        else TextSource(name, form or _form_of(name, warned, encoding))
        for name in names
        if name.startswith(TFDS) or name in kept
    ]


def files_of(sources: Iterable[TextSource]) -> list[str]:
    """The names of those sources that are no data sets."""
    return [name for name, form in sources if form != "tfds"]


def packed_size(sources: Sequence[TextSource]) -> int | None:
    """Bytes of all sources on the disk; None where one of them is a data set or a pipe."""
    files = [Path(name) for name in files_of(sources)]
    known = len(files) == len(sources) and all(file.is_file() for file in files)
    return sum(file.stat().st_size for file in files) if known else None


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
    taken = {real_path(Path(path)) for path in outputs if not is_special(path)}
    for name in inputs:
        if real_path(Path(name)) in taken:
            raise UserError(
                f"{name}: is input, but the output would take its place; name another "
                f"`{parameter}`, or leave it out of the input."
            )


def _files_below(path: Path) -> list[str]:
    if not path.is_dir():
        return [str(path)]
    found, seen = list[Path](), {real_path(path)}
    for folder, folders, names in os.walk(path, followlinks=True):
        # Hidden files and folders are half written, or work in progress.
        below = {real_path(Path(folder, one)): one for one in sorted(folders) if one[0] != "."}
        folders[:] = [one for real, one in below.items() if real not in seen]  # links may circle
        seen.update(below)
        found += (Path(folder, one) for one in names if one[0] != ".")
    return sorted(str(file) for file in found if file.is_file())


def _form_of(path: str, warned: set[str], encoding: TextEncoding) -> Form:
    """The form of a file; what is read as plain text and looks like something else is noted."""
    if _TABLE.search(path):
        raise UserError(
            f"{path}: is a table, and its header and all its cells would be read as text; write "
            "its texts as JSON lines, or, if it is plain text, let its name end in .txt."
        )
    start = encodings.beginning_of_text(path, encoding)
    if start.startswith(b"<doc "):
        return "wikiextractor"
    if kind_of(start.decode("utf-8", "ignore")) == "JSON":
        if start.startswith(b"["):
            raise UserError(f"{path}: is a JSON array; write one object a line (jq -c '.[]').")
        return "json_lines"
    other_kind(path, start, _EXTRACT, warned)
    return "text"


def has_magic(pattern: str) -> bool:
    """Whether a name is a pattern."""
    return not _MAGIC.isdisjoint(pattern)


def match_files(pattern: str) -> list[str]:
    """The files that match a name or glob, sorted; the name of a file is given back as it is.

    Hidden files match only where the pattern itself has the dot, as in a shell.
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


_EXAMPLES_AT_ONCE = 256
_LONGEST_PARAGRAPH = 1 << 14  # of lines that may be parts of it; a longer one is cut between blocks


class TextBlock(NamedTuple):
    """Some lines of a source; those that are cut at one width are parts of paragraphs."""

    source: TextSource
    lines: encodings.LineBlock
    ends_source: bool
    is_cut: bool = False


@dataclass(frozen=True)
class Reading(Options):
    """How to read the sources."""

    text_field: str = option(
        "text",
        "The field that holds the text in JSON lines and data sets; its lines are paragraphs.",
    )
    one_document_per_file: bool = option(
        False, "Each file of plain text is one document; empty lines then only separate paragraphs."
    )
    text_encoding: TextEncoding = nested(TextEncoding)


def read_blocks(source: TextSource, reading: Reading) -> Iterator[TextBlock]:
    """Reads a source in blocks that can be worked on independently.

    A pipe is read as well; its blocks can be read once.
    """
    blocks = (
        _read_data_set(source.name, reading)
        if source.form == "tfds"
        else encodings.read_line_blocks(source.name, stream=True, encoding=reading.text_encoding)
    )
    waiting = next(blocks, None)
    while waiting is not None:
        following = next(blocks, None)
        if following is not None:
            start = _start_of_rest(waiting.text, source.form)
            rest = waiting.text[start:]
            waiting = waiting._replace(text=waiting.text[:start])
            first = following.first_line - rest.count(b"\n")
            following = following._replace(text=rest + following.text, first_line=first)
        yield TextBlock(source, waiting, following is None)
        waiting = following


def paragraphs_of(block: TextBlock, reading: Reading) -> Iterator[str | None]:
    """The paragraphs of a block, and None wherever a document ends.

    White space within a paragraph becomes single spaces. Where lines are cut, they are joined to
    paragraphs.
    """
    lines = raw_paragraphs_of(block, reading)
    for paragraph in joined_lines(lines) if block.is_cut else lines:
        if paragraph is None:
            yield None
        elif words := paragraph.split():
            yield " ".join(words)


def raw_paragraphs_of(block: TextBlock, reading: Reading) -> Iterator[str | None]:
    """The lines of a block with all white space as it is, and None wherever a document ends."""
    first, name = block.lines.first_line, block.source.name
    text = encodings.decode(name, first, block.lines.text, reading.text_encoding)
    if block.source.form in ("json_lines", "tfds"):
        # What JSON spells in escapes is text only now.
        texts = _from_json(text, name, first, reading.text_field)
        yield from map(reading.text_encoding.composed, texts)
    elif block.source.form == "wikiextractor":
        yield from _from_wikiextractor(text.split("\n"))
    else:
        yield from _from_text(text.split("\n"), reading.one_document_per_file)
    if block.ends_source:
        yield None


def _from_text(lines: list[str], one_document: bool) -> Iterator[str | None]:
    for line in islice(lines, len(lines) - (not lines[-1])):
        if line and not line.isspace():
            yield line
        else:
            yield "" if one_document else None


def _from_wikiextractor(lines: list[str]) -> Iterator[str | None]:
    is_title = False
    for line in lines:
        if line.startswith(("<doc ", "</doc>")):
            yield None
            is_title = line.startswith("<doc ")
        elif is_title:
            is_title = False  # the first line repeats the title
        else:
            yield html.unescape(line) if "&" in line else line


def _from_json(text: str, name: str, first_line: int, text_field: str) -> Iterator[str | None]:
    for number, line in enumerate(text.split("\n"), first_line):
        if not line or line.isspace():
            continue
        yield from _texts_in(line, f"{name}: line {number}", text_field)
        yield None


def _texts_in(line: str, where: str, text_field: str) -> list[str]:
    """The paragraphs of an object's field: the lines of a text, or a list of texts."""
    try:
        values = bounded_loads(line.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where} {fault_of_json(error, None)}; correct the line.") from error
    value = values.get(text_field) if isinstance(values, dict) else None
    # An escape such as \ud83d may be one half of a surrogate pair, which is not text.
    if isinstance(value, str):
        return as_text(value).split("\n")
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return [as_text(item) for item in value]
    found = f"its fields: {', '.join(map(repr, values))}" if type(values) is dict else "no object"
    raise UserError(
        f"{where} has no text, or list of texts, in the field '{text_field}' ({found}); name the "
        "field of the text with `text_field`, or correct the line."
    )


def _start_of_rest(text: bytes, form: Form) -> int:
    """Where in a block the part begins that is read with the next one: what they share."""
    if form == "text":
        ends = (m.end() for m in EMPTY_LINE.finditer(text, max(0, len(text) - _LONGEST_PARAGRAPH)))
        return max(ends, default=len(text))
    last = text.rstrip(b"\n").rfind(b"\n") + 1
    # A title follows the line that opens a document.
    opens = form == "wikiextractor" and text[last:].startswith(b"<doc ")
    return last if opens else len(text)


def open_data_set(name: str) -> tuple[Any, str]:
    """The builder of tfds:NAME[:SPLIT], a data set on this machine, and the split."""
    import tensorflow_datasets as tfds

    data_set, _, split = name.removeprefix(TFDS).partition(":")
    split = split or "train"
    remedy = "check the data set's name, its split and the variable TFDS_DATA_DIR"
    with file_reading(name, "a data set", remedy):
        builder = tfds.builder(data_set)
        if not builder.info.splits:
            raise ValueError("it is not on this machine; download and prepare it")
        _ = builder.info.splits[split].num_examples
    return builder, split


def examples_of(builder: Any, split: str) -> Iterator[Any]:
    """The examples of a data set in the order of its files, as NumPy has them."""
    import tensorflow_datasets as tfds

    return iter(tfds.as_numpy(builder.as_dataset(split=split, shuffle_files=False)))


def _read_data_set(name: str, reading: Reading) -> Iterator[encodings.LineBlock]:
    examples, first = examples_of(*open_data_set(f"{TFDS}{name}")), 1
    while batch := list(islice(examples, _EXAMPLES_AT_ONCE)):
        text = b"".join(_as_json(name, example, reading.text_field) for example in batch)
        yield encodings.LineBlock(first, text, len(text))
        first += len(batch)


def _as_json(name: str, example: Any, text_field: str) -> bytes:
    if not isinstance(example, dict) or not isinstance(example.get(text_field), bytes):
        fields = ", ".join(example) if isinstance(example, dict) else type(example).__name__
        raise UserError(
            f"tfds:{name}: has no text field '{text_field}'; `text_field` names one of: {fields}."
        )
    text = example[text_field].decode("utf-8", "ignore")
    return json_text({text_field: text}, ensure_ascii=False).encode() + b"\n"
