"""Pages that are files of the project's top folder, read from there: nothing stands twice."""

import os
import re
from pathlib import Path

from sphinx.application import Sphinx

PAGES = {
    "start": "README.md",
    "start_ko": "README.ko.md",
    "results": "RESULTS.md",
    "small_study": "RESULTS_small_study.md",
    "changelog": "CHANGELOG.md",
    "design": "BUILD.md",
}
_TITLES = {"start": "Start"}  # README's own title is that of the whole site
_FILES = {file: f"{page}.md" for page, file in PAGES.items()}
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?://|#|mailto:)([^)#\s]+)(#[^)]*)?\)")
_PICTURE = re.compile(r"!\[([^\]]*)\]\((?!https?://)([^)\s]+)\)")


def for_the_site(text: str) -> str:
    """A page of the top folder with its links as the site has them.

    Links to pages of the site lead there; of files that are no page only the name remains.

    Example:
        >>> for_the_site("[all](RESULTS.md#speed), [a page](docs/api.md), [code](tools/demo.py)")
        '[all](results.md#speed), [a page](api.md), code'
    """

    def link(match: re.Match[str]) -> str:
        words, path, anchor = match[1], match[2], match[3] or ""
        if path.startswith("docs/"):
            return f"[{words}]({path.removeprefix('docs/')}{anchor})"
        return f"[{words}]({_FILES[path]}{anchor})" if path in _FILES else words

    return _PICTURE.sub(r"![\1](../\2)", _LINK.sub(link, text))


def _read(app: Sphinx, page: str, source: list[str]) -> None:
    if page in PAGES:
        path = Path(app.srcdir).parent / PAGES[page]
        app.env.note_dependency(os.fspath(path))
        source[0] = _titled(page, for_the_site(path.read_text(encoding="utf-8")))


def _titled(page: str, text: str) -> str:
    return re.sub(r"\A# .*", f"# {_TITLES[page]}", text) if page in _TITLES else text


def setup(app: Sphinx) -> dict[str, bool]:
    """Reads those pages from the top folder."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True}
