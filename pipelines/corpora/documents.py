"""Reads text collections as documents: paragraphs, and None where a document ends.

Plain text, JSON lines, WikiExtractor's output and TFDS data sets all become the same stream, block
by block, so that blocks can be worked on by several processes. What `split_sentences` writes from
it is read for pre-training by `pretraining_data.documents`.
"""

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from keras_bert_impl.errors import UserError
from keras_bert_impl.json_files import bounded_loads, fault_of_json, json_text
from keras_bert_impl.options import check_options, nested, option
from keras_bert_impl.tokenization.reference import as_text
from pipelines.corpora.encodings import TextEncoding
from pipelines.corpora.sentences import joined_lines
from pipelines.corpora.sources import Form, Source
from pipelines.corpora.unpacking import LineBlock, decode, read_line_blocks

_EXAMPLES_AT_ONCE = 256
_EMPTY_LINE = re.compile(rb"\n[ \t\r]*\n")
_LONGEST_PARAGRAPH = 1 << 14  # of lines that may be parts of it; a longer one is cut between blocks


class TextBlock(NamedTuple):
    """Some lines of a source; those that are cut at one width are parts of paragraphs."""

    source: Source
    lines: LineBlock
    ends_source: bool
    is_cut: bool = False


@dataclass(frozen=True)
class Reading:
    """How to read the sources."""

    text_field: str = option(
        "text",
        "The field that holds the text in JSON lines and data sets; its lines are paragraphs.",
    )
    one_document_per_file: bool = option(
        False,
        "Each file of plain text is one document; empty lines then only separate paragraphs.",
    )
    data_dir: str | None = option(
        None, "The folder of TensorFlow Datasets; ~/tensorflow_datasets if not given."
    )
    text_encoding: TextEncoding = nested(TextEncoding)

    def __post_init__(self) -> None:
        check_options(self)


def read_blocks(source: Source, reading: Reading) -> Iterator[TextBlock]:
    """Reads a source in blocks that can be worked on independently.

    A pipe is read as well: whoever asks for blocks reads them once.
    """
    blocks = (
        _read_data_set(source.name, reading)
        if source.form == "tfds"
        else read_line_blocks(source.name, stream=True, encoding=reading.text_encoding)
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
    found: Iterator[str | None]
    first, name = block.lines.first_line, block.source.name
    text = decode(name, first, block.lines.text, reading.text_encoding)
    if block.source.form in ("json_lines", "tfds"):
        # What JSON spells in escapes is text only now.
        texts = _from_json(text, name, first, reading.text_field)
        found = (reading.text_encoding.composed(one) for one in texts)
    elif block.source.form == "wikiextractor":
        found = _from_wikiextractor(text.split("\n"))
    else:
        found = _from_text(text.split("\n"), reading.one_document_per_file)
    yield from found
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
        paragraphs = _texts_in(line, f"{name}: line {number}", text_field)
        yield from paragraphs
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
    found = (
        f"its fields: {', '.join(map(repr, values))}" if isinstance(values, dict) else "no object"
    )
    raise UserError(
        f"{where} has no text, or list of texts, in the field '{text_field}' ({found}); name the "
        "field of the text with `text_field`, or correct the line."
    )


def _start_of_rest(text: bytes, form: Form) -> int:
    """Where in a block the part begins that is read with the next one: what they share."""
    if form == "text":
        ends = (m.end() for m in _EMPTY_LINE.finditer(text, max(0, len(text) - _LONGEST_PARAGRAPH)))
        return max(ends, default=len(text))
    last = text.rstrip(b"\n").rfind(b"\n") + 1
    # A title follows the line that opens a document.
    opens = form == "wikiextractor" and text[last:].startswith(b"<doc ")
    return last if opens else len(text)


@contextmanager
def opening_data_set(name: str, options: str) -> Iterator[None]:
    """Says what is wrong where a data set cannot be opened inside the block."""
    import tensorflow_datasets as tfds

    try:
        yield
    except (
        ValueError,
        KeyError,
        AssertionError,
        OSError,
        tfds.core.registered.DatasetNotFoundError,
    ) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else "?"
        raise UserError(f"{name}: cannot be read ({reason}); check {options}.") from error


def _read_data_set(name: str, reading: Reading) -> Iterator[LineBlock]:
    import tensorflow_datasets as tfds

    name, _, split = name.partition(":")
    with opening_data_set(f"tfds:{name}", "its name, split and `data_dir`"):
        examples = tfds.as_numpy(
            tfds.load(name, split=split or "train", data_dir=reading.data_dir, download=False)
        )
    first = 1
    iterator = iter(examples)
    while batch := list(islice(iterator, _EXAMPLES_AT_ONCE)):
        text = b"".join(_as_json(name, example, reading.text_field) for example in batch)
        yield LineBlock(first, text, len(text))
        first += len(batch)


def _as_json(name: str, example: Any, text_field: str) -> bytes:
    if not isinstance(example, dict) or not isinstance(example.get(text_field), bytes):
        fields = ", ".join(example) if isinstance(example, dict) else type(example).__name__
        raise UserError(
            f"tfds:{name}: has no text field '{text_field}'; `text_field` names one of: {fields}."
        )
    text = example[text_field].decode("utf-8", "ignore")
    return json_text({text_field: text}, ensure_ascii=False).encode() + b"\n"
