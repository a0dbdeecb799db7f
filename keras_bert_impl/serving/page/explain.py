"""Attention shown: a page in one file as a job, and an object that shows itself in a notebook."""

import html
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from keras_bert_impl.checkpoints.model_source import CheckpointOptions
from keras_bert_impl.engines.config import ENGINES, TENSORFLOW
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import check_output, open_whole
from keras_bert_impl.options import REQUIRED, check_options, option
from keras_bert_impl.serving.attention import AttentionModel, TextAttention
from keras_bert_impl.serving.page.single_page import attention_page

_HEIGHT = 720  # pixels of a notebook's frame


@dataclass(frozen=True, kw_only=True)
class ExplainConfig(CheckpointOptions):
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
        check_options(self)
        if not any(text.strip() for text in self.text):
            raise UserError("there is no text; give `text`.")
        if self.text_pair and len(self.text_pair) != len(self.text):
            raise UserError(
                f"`text` is given {len(self.text)} times, but `text_pair` {len(self.text_pair)} "
                "times; give a second text for each."
            )

    @property
    def texts(self) -> list[str | tuple[str, str]]:
        """The texts, and pairs of them."""
        if self.text_pair:
            return list(zip(self.text, self.text_pair, strict=True))
        return list(self.text)


@dataclass(frozen=True)
class Explained:
    """What a page shows.

    Attributes:
        texts: how many.
        layers: of the model.
        heads: of each layer.
    """

    texts: int
    layers: int
    heads: int


def explain(config: ExplainConfig) -> Explained:
    """Writes a page with the attention of texts."""
    output = check_output(config.output_file)
    model = AttentionModel.open(config.model, engine=config.engine, **config.description())
    attentions = model.of_texts(config.texts)
    with open_whole(output) as file:
        file.write(attention_page(attentions))
    layers, heads = attentions[0].probabilities.shape[:2]
    return Explained(len(attentions), layers, heads)


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
