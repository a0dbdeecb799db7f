"""A page in one file: scripts, styles and data inside of it, and nothing asked from anywhere."""

import base64
import hashlib
import html
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from keras_bert_impl.json_files import json_text
from keras_bert_impl.serving.attention import TextAttention

# In the order in which they need each other.
_MODULES = ("text.js", "dom.js", "attention_data.js", "attention_view.js", "single_page.js")
_STYLES = ("page.css", "attention.css")
STATIC = resources.files(__package__) / "static"
"""The files of the page."""

_SCALE = 65535
_IMPORT = re.compile(r"^import .*?;\n", re.MULTILINE | re.DOTALL)


def attention_page(attentions: Sequence[TextAttention], title: str = "Attention") -> str:
    """A page that shows the attention of texts.

    Returns:
        HTML, which a browser may open from a file: its own policy forbids it to ask for anything.
    """
    script, style = _joined_modules(), "".join(map(read_static, _STYLES))
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; "
        "base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{html.escape(title)}</title>",
            f"<style>{style}</style>\n</head>\n<body>",
            f'<main><h1><bdi>{html.escape(title)}</bdi></h1><div id="texts"></div></main>',
            f'<script type="application/json" id="data">{as_data(attentions)}</script>',
            f'<script type="module">{script}</script>\n</body>\n</html>\n',
        ]
    )


def as_data(attentions: Sequence[TextAttention]) -> str:
    r"""JSON that can stand inside of a page: no text in it can end its element.

    Example:
        >>> import numpy as np
        >>> row = TextAttention(("</script>",), (0,), np.ones([1, 1, 1, 1], np.float32))
        >>> as_data([row])[:33]
        '[{"tokens": ["\\u003c/script\\u003e'
    """
    values: list[dict[str, Any]] = [written_attention(attention) for attention in attentions]
    written = json_text(values)  # in ASCII
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def written_attention(attention: TextAttention) -> dict[str, Any]:
    """The attention of a text as JSON values, in shares of 1/65535.

    Returns:
        `tokens`, `segments`, `layers`, `heads`, and `probabilities`: base64 of uint16,
        little-endian, [layers, heads, from, to].

    Example:
        >>> halves = np.full([1, 1, 2, 2], 0.5, np.float32)
        >>> written_attention(TextAttention(("a", "b"), (0, 0), halves))["probabilities"]
        'AIAAgACAAIA='
    """
    layers, heads = attention.probabilities.shape[:2]
    shares = np.rint(attention.probabilities * _SCALE).astype("<u2")
    return {
        "tokens": list(attention.tokens),
        "segments": list(attention.segments),
        "layers": layers,
        "heads": heads,
        "probabilities": base64.b64encode(shares.tobytes()).decode("ascii"),
    }


@cache
def read_static(name: str) -> str:
    """The text of a file of the page."""
    return (STATIC / name).read_text(encoding="utf-8")


def _joined_modules() -> str:
    """The modules as one script: names are unique among them, which a test asks for."""
    scripts = [_IMPORT.sub("", read_static(name)) for name in _MODULES]
    return "".join(re.sub(r"^export ", "", script, flags=re.MULTILINE) for script in scripts)


def _digest(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
