"""What else the built site holds: each tutorial as a notebook, and `llms.txt`, a list of the pages.

A notebook's cells are the examples that the page runs: Python as it is, commands as `%%bash`.
"""

import json
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

_BLOCK = re.compile(
    r"^```\{run\} (python|sh)\n(?::\w+: [^\n]*\n)*\n?(.*?)^```\n", re.DOTALL | re.MULTILINE
)
_LINK = '<a href="../notebooks/{name}.ipynb" download>This page as a notebook</a>\n'


def notebook(page: str) -> dict[str, Any]:
    r"""A page as a notebook (nbformat 4.5), without outputs.

    Example:
        >>> [cell["source"] for cell in notebook("# A\n```{run} sh\nls\n```\n")["cells"]]
        ['# A', '%%bash\nls']
    """
    cells: list[dict[str, Any]] = []

    def add(kind: str, source: str) -> None:
        if source.strip():
            code = {"execution_count": None, "outputs": []} if kind == "code" else {}
            cell = {"cell_type": kind, "id": f"cell-{len(cells)}", "metadata": {}, **code}
            cells.append({**cell, "source": source.strip("\n")})

    end = 0
    for block in _BLOCK.finditer(page):
        add("markdown", page[end : block.start()])
        add("code", ("%%bash\n" if block[1] == "sh" else "") + block[2])
        end = block.end()
    add("markdown", page[end:])
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def line_of(name: str, page: str) -> str:
    r"""A page's line in `llms.txt`: its title, its address and its first sentence.

    Example:
        >>> line_of("how_to/labels", "# Labels\n\nTexts get [labels](x.md). More.\n")
        '- [Labels](how_to/labels.html): Texts get labels.'
    """
    title = re.search(r"^# (.+)$", page, re.MULTILINE)
    words = re.search(r"^[A-Z0-9`\[][^\n|]*$", page, re.MULTILINE)
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", words[0]) if words else ""
    sentence = re.split(r"(?<=[.:]) ", plain)[0]
    return f"- [{title[1] if title else name}]({name}.html): {sentence}"


def _read(_app: Sphinx, page: str, source: list[str]) -> None:
    if page.startswith("tutorials/") and _BLOCK.search(source[0]):
        heading, _, rest = source[0].partition("\n")
        source[0] = f"{heading}\n\n{_LINK.format(name=Path(page).name)}{rest}"


def _write(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir) / "notebooks"
    folder.mkdir(exist_ok=True)
    lines = ["# keras_bert_impl", "", "> BERT in Keras 3: pre-train, fine-tune, export, serve.", ""]
    for name in sorted(app.env.found_docs):
        page = (Path(app.srcdir) / f"{name}.md").read_text(encoding="utf-8")
        lines.append(line_of(name, page))
        if name.startswith("tutorials/") and _BLOCK.search(page):
            text = json.dumps(notebook(page), ensure_ascii=False, indent=1)
            (folder / f"{Path(name).name}.ipynb").write_text(text + "\n", encoding="utf-8")
    (Path(app.outdir) / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Adds the notebooks and the list to a built site."""
    app.connect("source-read", _read)
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True}
