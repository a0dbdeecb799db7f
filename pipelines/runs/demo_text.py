"""The demo's text: the documentation that every Python ships, so nothing is downloaded.

It is the language reference that `help()` shows (`pydoc_data.topics`) and the docstrings of the
standard library, read from the source files without importing them.
"""

import ast
import os
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from keras_bert_impl.files import followed, open_whole
from keras_bert_impl.json_files import json_text

_LEAST_CHARACTERS = 400
_CODE = re.compile(r"^\s*(>>>|\.\.\.|\$|#|@|def |class |import )|::=|[=(]\s*$")
_WORD = re.compile(r"[A-Za-z]{2,}")


class Document(NamedTuple):
    """A document of the corpus; paragraphs are the lines of `text`."""

    title: str
    text: str


def prose_paragraphs(text: str) -> list[str]:
    r"""Paragraphs of five words or more, each on one line, without code, headings and tables.

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


def demo_documents() -> Iterator[Document]:
    """Gives the documents in a fixed order: first the language topics, then module by module."""
    from pydoc_data.topics import topics  # half a megabyte: only when asked for

    for title in sorted(topics):
        yield from _document(title, topics[title])
    library = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(library.rglob("*.py")):
        module = path.relative_to(library)
        if not {"site-packages", "test", "tests", "idlelib", "lib2to3"} & set(module.parts):
            yield from _document(str(module), "\n\n".join(_docstrings(path)))


def write_demo_text(path: str | os.PathLike[str], held_out_path: str | os.PathLike[str]) -> int:
    """Writes the text as JSON lines (`title`, `text`), every 16th document to the second file."""
    size = 0
    outputs = open_whole(followed(path)), open_whole(followed(held_out_path))
    with outputs[0] as train, outputs[1] as held_out:
        for number, document in enumerate(demo_documents()):
            line = json_text(document._asdict(), ensure_ascii=False)
            (held_out if number % 16 == 15 else train).write(line + "\n")
            size += len(document.text.encode())
    return size


def _document(title: str, text: str) -> Iterator[Document]:
    joined = "\n".join(prose_paragraphs(text))
    if len(joined) >= _LEAST_CHARACTERS:
        yield Document(title, joined)


def _docstrings(path: Path) -> Iterator[str]:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return  # the standard library holds a few files that are broken on purpose
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(tree) if isinstance(node, documented)]
    nodes.sort(key=lambda node: getattr(node, "lineno", 0))
    yield from filter(None, map(ast.get_docstring, nodes))
