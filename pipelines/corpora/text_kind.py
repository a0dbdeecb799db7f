"""Tells what a file holds that is about to be read as plain text, and is perhaps none.

A table, a page of HTML or JSON lines read as text give names of fields, tags and braces as words,
without any error. What is told here is told by the text alone, and in doubt it is prose.
"""

import csv
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from keras_bert_impl.json_files import bounded_loads

_LOGGER = logging.getLogger(__name__)

Kind = Literal["JSON lines", "JSON", "a table", "HTML", "XML", "WikiExtractor's output"]

SAMPLE_BYTES = 1 << 16

_FEWEST_ROWS = 5  # fewer lines may be alike by chance
_SEPARATORS = ",;\t|"
_IN_NO_TEXT = "\t|"  # tables with these quote nothing as a rule, and set blanks as they like
# A comma within a number separates nothing.
_NO_NUMBER = {
    mark: re.compile(rf"(?<!\d){re.escape(mark)}|{re.escape(mark)}(?!\d)") for mark in _SEPARATORS
}
_MOST_SPACED = 0.2  # in prose a blank follows a comma, in a table hardly ever
_TAG = re.compile(
    r"</?(?:a|article|b|body|br|div|em|footer|h[1-6]|head|header|hr|html|i|img|input|label|li|link|"
    r"main|meta|nav|ol|option|p|script|section|span|strong|style|table|tbody|td|th|title|tr|ul)"
    r"(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_FEWEST_TAGS = 5
_STRING = r'"(?:[^"\\\n]|\\.)*"'
_OBJECT_BEGINS = re.compile(rf'\{{\s*{_STRING}\s*:\s*["\[{{\d\-tfn]')
_ARRAY_BEGINS = re.compile(rf"\[\s*(?:\{{\s*{_STRING}\s*:|{_STRING}\s*,)")
_COMMENT = re.compile(r"<!--.*?-->\s*", re.DOTALL)
_JSON_BEGINS = re.compile(rf"\s*[\[{{]\s*(?:\{{\s*)?{_STRING}\s*[:,]")
_JSON_LINE = re.compile(rf"\s*(?:{_STRING}\s*:.*|{_STRING},?|[\[\]{{}},\s]+)\s*")


def kind_of(sample: str) -> Kind | None:
    r"""What a text looks like; None for plain text.

    Args:
        sample: the text's beginning; its last line may be cut off.

    Example:
        >>> print(kind_of("One sentence, here.\nAnother one, there.\n"))
        None
        >>> kind_of('{"text": "One."}\n{"text": "Two."}\n')
        'JSON lines'
        >>> kind_of("id,text\n" + "7,fine\n" * 5)
        'a table'
    """
    text = sample.removeprefix("\ufeff").lstrip()
    whole, newline, _rest = text.rpartition("\n")
    lines = [line for line in (whole if newline else text).split("\n") if line.strip()]
    if not lines:
        return None
    return _json(lines, is_cut=not newline) or _markup(text, lines) or _table(lines)


def _json(lines: Sequence[str], is_cut: bool) -> Kind | None:
    # One that is broken is named by its number where they are read as what they are.
    alike = all(line.lstrip().startswith("{") for line in lines)
    if alike and 2 * sum(map(_is_object, lines)) > len(lines):
        return "JSON lines"
    if is_cut and _OBJECT_BEGINS.match(lines[0]):
        return "JSON lines"  # one object that is longer than the sample
    if len(lines) == 1 and _ARRAY_BEGINS.match(lines[0]):
        return "JSON"
    if _JSON_BEGINS.match("\n".join(lines[:3])) and all(map(_JSON_LINE.fullmatch, lines[1:])):
        return "JSON" if len(lines) > 1 else None
    return None


def _is_object(line: str) -> bool:
    if not line.lstrip().startswith("{"):
        return False
    try:
        return isinstance(bounded_loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _markup(text: str, lines: Sequence[str]) -> Kind | None:
    text = _COMMENT.sub("", text, count=1) if text.startswith("<!--") else text
    start = text[:100].lower()
    if start.startswith(("<!doctype html", "<html")):
        return "HTML"
    if start.startswith(("<?xml", "<mediawiki")):
        return "XML"
    if start.startswith("<doc "):
        return "WikiExtractor's output"
    tagged = sum(bool(_TAG.search(line)) for line in lines)
    # Prose about HTML names a tag now and then; HTML has them in most lines, and opens with one.
    mostly = text.startswith("<") and 2 * tagged >= len(lines)
    return "HTML" if mostly and len(_TAG.findall(text)) >= _FEWEST_TAGS else None


def _table(lines: Sequence[str]) -> Kind | None:
    return "a table" if any(_has_columns(lines, separator) for separator in _SEPARATORS) else None


def _has_columns(lines: Sequence[str], separator: str) -> bool:
    """Whether all lines have the same number of columns, and more than one with something in it."""
    if separator not in lines[0] or not any(map(_NO_NUMBER[separator].search, lines)):
        return False
    plain = separator in _IN_NO_TEXT
    quoting: Any = csv.QUOTE_NONE if plain else csv.QUOTE_MINIMAL
    try:
        rows = list(csv.reader(lines, delimiter=separator, quoting=quoting))
    except csv.Error:
        return False
    rows = rows[:-1] if len(rows) > _FEWEST_ROWS else rows  # a quoted cell may have been cut off
    if len(rows) < _FEWEST_ROWS or len({len(row) for row in rows}) > 1:
        return False
    filled = sum(any(row[number].strip() for row in rows) for number in range(len(rows[0])))
    later = [cell for row in rows for cell in row[1:]]
    spaced = sum(cell.startswith(" ") for cell in later)
    return filled > 1 and (separator == "|" or spaced <= _MOST_SPACED * len(later))


@dataclass
class OtherKinds:
    """Collects files that look like something else than plain text, and warns once of each kind.

    Attributes:
        remedies: what to do about a kind; those that are not named are `otherwise`.
        otherwise: what to do about any other kind.
    """

    remedies: dict[Kind, str]
    otherwise: str
    _files: dict[Kind, list[str]] = field(default_factory=dict)

    def look(self, path: str, start: bytes) -> Kind | None:
        """Looks at the beginning of a file; gives what it looks like.

        Args:
            path: the file.
            start: so many bytes; no more than `SAMPLE_BYTES` of them count.
        """
        kind = kind_of(start[:SAMPLE_BYTES].decode("utf-8", "ignore"))
        if kind is not None:
            self._files.setdefault(kind, []).append(path)
        return kind

    def warn(self) -> None:
        """Says what was found, one line a kind."""
        for kind in get_args(Kind):
            if files := self._files.get(kind):
                more = f" (and {len(files) - 1:,} more)" if len(files) > 1 else ""
                looks, are = ("look", "are") if more else ("looks", "is")
                _LOGGER.warning(
                    "%s%s: %s like %s and %s read as plain text, %s and all; %s.",
                    *(files[0], more, looks, kind, are, _READ_AS_WORDS[kind]),
                    self.remedies.get(kind, self.otherwise),
                )


_READ_AS_WORDS: dict[Kind, str] = {
    "JSON lines": "names of fields, braces",
    "JSON": "names of fields, braces",
    "a table": "header, separators",
    "HTML": "tags, scripts",
    "XML": "tags",
    "WikiExtractor's output": "tags, titles",
}
