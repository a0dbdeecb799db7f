"""The words that a user may search for, where a page says the thing in other words.

`<!-- search: out of memory, OOM -->` before a heading makes that section the first that the site's
search finds for these words. A comment, and not Sphinx' own directive, because these files are read
as plain Markdown, too.
"""

import re

from sphinx.application import Sphinx

_COMMENT = re.compile(r"^<!-- search: (.*) -->$", re.MULTILINE)


def as_index(text: str) -> str:
    """A page with these comments as entries of Sphinx' index, which its search asks first.

    Example:
        >>> print(as_index("<!-- search: NER, entities -->"))
        ```{index} ! NER, ! entities
        ```
    """
    return _COMMENT.sub(
        lambda match: "```{index} ! " + ", ! ".join(match[1].split(", ")) + "\n```", text
    )


def _read(_app: Sphinx, _page: str, source: list[str]) -> None:
    source[0] = as_index(source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Reads the comments of every page."""
    app.connect("source-read", _read, priority=600)  # after the pages of the top folder are read
    return {"parallel_read_safe": True}
