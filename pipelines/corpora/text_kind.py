"""One look at the first line of a file that is about to be read as plain text, and may be none.

A table, a page of HTML or JSON lines read as text give names of fields, tags and braces as words,
without any error. In doubt it is prose.
"""

import logging
import re
from dataclasses import dataclass, field
from typing import Literal

_LOGGER = logging.getLogger(__name__)

Kind = Literal["JSON", "CSV", "HTML"]

SAMPLE_BYTES = 1 << 16
_MARKUP = re.compile(r"<(!doctype html|html|\?xml|mediawiki|doc |(head|body|div|table)[ >])", re.I)
_JSON_BEGINS = re.compile(r'\{\s*"(?:[^"\\]|\\.)*"\s*:|\[\s*(?:\{|$)')
# A header names its columns: each begins with a letter, and no blank follows a separator.
_NAME = r'"?[^\W\d][\w.#-]*(?: [\w.#-]+)?"?'
_HEADER = re.compile(rf"{_NAME}(?:([,;\t|]){_NAME})(?:\1{_NAME})*")
_READ_AS_WORDS = {"JSON": "names of fields, braces", "CSV": "separators", "HTML": "tags"}


def kind_of(sample: str) -> Kind | None:
    r"""What a text looks like by its first line that is not empty; None for plain text.

    Args:
        sample: the text's beginning; its last line may be cut off.

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


@dataclass
class OtherKinds:
    """Collects files that look like something else than plain text, and warns once of each kind.

    Attributes:
        remedy: what to do about them.
    """

    remedy: str
    _files: dict[Kind, list[str]] = field(default_factory=dict)

    def look(self, path: str, start: bytes) -> Kind | None:
        """Looks at the beginning of a file; gives what it looks like."""
        kind = kind_of(start[:SAMPLE_BYTES].decode("utf-8", "ignore"))
        if kind is not None:
            self._files.setdefault(kind, []).append(path)
        return kind

    def warn(self) -> None:
        """Says what was found, one line a kind."""
        for kind, files in self._files.items():
            more = f" (and {len(files) - 1:,} more)" if len(files) > 1 else ""
            _LOGGER.warning(
                "%s%s: begins like %s and is read as plain text, %s and all; %s.",
                *(files[0], more, kind, _READ_AS_WORDS[kind], self.remedy),
            )
