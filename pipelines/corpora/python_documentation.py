"""A small real corpus that every Python ships: its own documentation.

The demo and the tests use it because it needs no download: the language reference that `help()`
shows (`pydoc_data.topics`) and the docstrings of the standard library, read from the source files
without importing them.
"""

import ast
import json
import os
import re
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from keras_bert_impl.files import followed, open_whole
from keras_bert_impl.options import REQUIRED, option

_LEAST_CHARACTERS = 400
_CODE = re.compile(r"^\s*(>>>|\.\.\.|\$|#|@|def |class |import )|::=|[=(]\s*$")
_WORD = re.compile(r"[A-Za-z]{2,}")


class Document(NamedTuple):
    """A document of the corpus; paragraphs are the lines of `text`."""

    title: str
    text: str


def prose_paragraphs(text: str) -> list[str]:
    r"""Joins hard-wrapped lines to paragraphs and leaves out code, headings and tables.

    Args:
        text: hard-wrapped text, paragraphs separated by empty lines.

    Returns:
        Paragraphs of at least five words, each on one line.

    Example:
        >>> prose_paragraphs("Title\n*****\n\nTwo lines that belong\ntogether here.\n\n>>> 1")
        ['Two lines that belong together here.']
    """
    paragraphs = []
    for block in re.split(r"\n\s*\n", text):
        lines = [line.strip() for line in block.splitlines()]
        if any(_CODE.search(line) for line in lines) or re.search(r"[*=~-]{4,}|  \S+  ", block):
            continue
        paragraph = re.sub(r"\s+", " ", " ".join(lines)).strip()
        if len(_WORD.findall(paragraph)) >= 5:
            paragraphs.append(paragraph)
    return paragraphs


def read_python_documentation() -> Iterator[Document]:
    """Gives the documents in a fixed order: first the language topics, then module by module.

    Example:
        >>> next(read_python_documentation()).title
        'assert'
    """
    from pydoc_data.topics import topics  # half a megabyte: only when asked for

    for title in sorted(topics):
        yield from _document(title, topics[title])
    library = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(library.rglob("*.py")):
        module = path.relative_to(library)
        if not {"site-packages", "test", "tests", "idlelib", "lib2to3"} & set(module.parts):
            yield from _document(str(module), "\n\n".join(_docstrings(path)))


@dataclass(frozen=True, kw_only=True)
class PythonDocumentationConfig:
    """Where to write the corpus."""

    output_file: str = option(
        REQUIRED, "Where to write the documents: JSON lines with `title` and `text`."
    )
    held_out_file: str = option(
        REQUIRED, "Where to write every 16th document instead, for evaluation."
    )


def write_python_documentation(
    path: str | os.PathLike[str], held_out_path: str | os.PathLike[str]
) -> int:
    """Writes the corpus as JSON lines (`title`, `text`); every 16th document is held out.

    Returns:
        The number of bytes of text written.

    Raises:
        UserError: a file cannot be written.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> write_python_documentation(folder / "train.jsonl", folder / "held_out.jsonl") > 500_000
        True
    """
    size = 0
    outputs = open_whole(followed(path)), open_whole(followed(held_out_path))
    with outputs[0] as train, outputs[1] as held_out:
        for number, document in enumerate(read_python_documentation()):
            line = json.dumps(document._asdict(), ensure_ascii=False)
            (held_out if number % 16 == 15 else train).write(line + "\n")
            size += len(document.text.encode())
    return size


def _document(title: str, text: str) -> Iterator[Document]:
    joined = "\n".join(prose_paragraphs(text))
    if len(joined) >= _LEAST_CHARACTERS:
        yield Document(title, joined)


def _docstrings(path: Path) -> Iterator[str]:
    """The docstrings of a source file, in the order in which they stand."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return  # the standard library holds a few files that are broken on purpose
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(tree) if isinstance(node, documented)]
    for node in sorted(nodes, key=lambda node: getattr(node, "lineno", 0)):
        docstring = ast.get_docstring(node)
        if docstring:
            yield docstring
