"""Attention in a notebook: an object that shows itself."""

import html
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from keras_bert_impl.serving.attention import AttentionModel, TextAttention
from keras_bert_impl.serving.page.single_page import attention_page

_HEIGHT = 720  # pixels


@dataclass(frozen=True)
class ShownAttention:
    """The attention of texts, which a notebook shows as head view and model view.

    Attributes:
        attentions: of each text, with its tokens and numbers.
        height: of the frame, in pixels.
    """

    attentions: Sequence[TextAttention]
    height: int = _HEIGHT

    def page(self) -> str:
        """A page for a browser, in one file."""
        return attention_page(self.attentions)

    def _repr_html_(self) -> str:
        # A frame of its own: styles stay apart, and the page reaches nothing of the notebook.
        page = html.escape(self.page())
        return (
            '<iframe title="Attention" sandbox="allow-scripts" width="100%" '
            f'height="{self.height}" style="border: 0" srcdoc="{page}"></iframe>'
        )


def show_attention(
    model: str | os.PathLike[str] | AttentionModel,
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
    opened = (
        model if isinstance(model, AttentionModel) else AttentionModel.open(model, **description)
    )
    return ShownAttention(opened.of_texts(texts))
