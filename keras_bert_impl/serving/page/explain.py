"""Attention shown: a page in one file, and an object that shows itself in a notebook."""

import base64
import hashlib
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from keras_bert_impl.checkpoints.model_source import AdaptedOptions
from keras_bert_impl.engines.config import ENGINES, TENSORFLOW
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import StrPath, check_output, open_whole
from keras_bert_impl.json_files import json_text
from keras_bert_impl.options import REQUIRED, option
from keras_bert_impl.serving.attention import AttentionModel, TextAttention

STATIC = resources.files(__package__) / "static"
"""The files of the page."""

# In the order in which they need each other.
_MODULES = (
    *("text.js", "dom.js", "link.js", "picture.js", "attention_data.js"),
    *("attention_reading.js", "attention_view.js", "single_page.js"),
)
_STYLES = ("page.css", "attention.css")
_SCALE = 65535
_IMPORT = re.compile(r"^import .*?;\n|^export ", re.MULTILINE | re.DOTALL)
_AS_CODES = str.maketrans({sign: f"\\u{ord(sign):04x}" for sign in "<>&"})


@dataclass(frozen=True, kw_only=True)
class ExplainConfig(AdaptedOptions):
    """Which texts to explain, and with which model."""

    model: str = option(
        REQUIRED,
        "A model directory, a TF1 checkpoint, a run's folder or checkpoint, or a name on the "
        "Hugging Face hub.",
    )
    text: Sequence[str] = option((), "A text; repeat the flag for more.", repeated=True)
    text_pair: Sequence[str] = option(
        (), "The second text of a pair; repeat the flag, once for each text.", repeated=True
    )
    engine: str = option(
        TENSORFLOW,
        "What computes: tensorflow, or openvino, which starts in a second from the second time on.",
        choices=ENGINES,
    )
    output_file: str = option(REQUIRED, "The page to write, HTML.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not any(text.strip() for text in self.text):
            raise UserError("there is no text; give `text`.")
        if self.text_pair and len(self.text_pair) != len(self.text):
            counts = f"{len(self.text)} times, but `text_pair` {len(self.text_pair)} times"
            raise UserError(f"`text` is given {counts}; give a second text for each.")


def explain(config: ExplainConfig) -> list[TextAttention]:
    """Writes a page with the attention of texts."""
    output = check_output(config.output_file)
    model = AttentionModel.open(config.model, engine=config.engine, **config.description())
    pairs = zip(config.text, config.text_pair, strict=True) if config.text_pair else config.text
    attentions = model.of_texts(list(pairs))
    with open_whole(output) as file:
        file.write(attention_page(attentions))
    return attentions


@dataclass(frozen=True)
class ShownAttention:
    """The attention of texts, which a notebook shows in a frame of so many pixels' height."""

    attentions: Sequence[TextAttention]
    height: int = 720

    def page(self) -> str:
        """A page for a browser, in one file."""
        return attention_page(self.attentions)

    def _repr_html_(self) -> str:
        # A frame of its own: styles stay apart, and the page reaches nothing of the notebook.
        page = html.escape(self.page())
        return (
            '<iframe title="Attention" sandbox="allow-scripts allow-downloads" width="100%" '
            f'height="{self.height}" style="border: 0" srcdoc="{page}"></iframe>'
        )


def show_attention(
    model: StrPath | AttentionModel,
    text: str | tuple[str, str] | Sequence[str | tuple[str, str]],
    text_pair: str | None = None,
    **description: Any,
) -> ShownAttention:
    """Shows how the tokens of texts attend to each other.

    Args:
        model: a model directory, a TF1 checkpoint, a name of the hub, or an opened model.
        text: a text, a pair of texts (a tuple), or a list of them.
        text_pair: the second text, if it is given apart.
        description: further arguments of `find_model`, such as `vocab_file`.

    Returns:
        An object that a notebook shows; its `attentions` hold the numbers, and `page()` gives a
        page for a browser.

    Raises:
        UserError: there is no such model, or a text is too long.
    """
    texts: list[str | tuple[str, str]]
    texts = [text] if isinstance(text, str | tuple) else list(text)
    if text_pair is not None:
        texts = [(one, text_pair) for one in texts if isinstance(one, str)]
    if not isinstance(model, AttentionModel):
        model = AttentionModel.open(model, **description)
    return ShownAttention(model.of_texts(texts))


def attention_page(attentions: Sequence[TextAttention], title: str = "Attention") -> str:
    """HTML, which a browser may open from a file: its policy forbids it to ask for anything."""
    # The modules as one script: names are unique among them, which a test asks for.
    script = "".join(_IMPORT.sub("", read_static(name)) for name in _MODULES)
    style = "".join(map(read_static, _STYLES))
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; "
        "base-uri 'none'; form-action 'none'"
    )
    # No text in the data can end its element.
    data = json_text([written_attention(one) for one in attentions]).translate(_AS_CODES)
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{html.escape(title)}</title>",
            f"<style>{style}</style>\n</head>\n<body>",
            f'<main><h1><bdi>{html.escape(title)}</bdi></h1><div id="texts"></div></main>',
            f'<script type="application/json" id="data">{data}</script>',
            f'<script type="module">{script}</script>\n</body>\n</html>\n',
        ]
    )


def written_attention(attention: TextAttention) -> dict[str, Any]:
    """The attention of a text as JSON values.

    `probabilities` are shares of 1/65535: base64 of uint16, little-endian, [layers, heads, from,
    to].

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


def _digest(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
