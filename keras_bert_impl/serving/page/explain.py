"""A page in one file with the attention of some texts, as a job."""

from collections.abc import Sequence
from dataclasses import dataclass

from keras_bert_impl.checkpoints.checkpoint_options import CheckpointOptions
from keras_bert_impl.engines.config import ENGINES, TENSORFLOW
from keras_bert_impl.errors import UserError
from keras_bert_impl.files import check_output, open_whole
from keras_bert_impl.options import REQUIRED, check_options, option


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
    from keras_bert_impl.serving.attention import AttentionModel
    from keras_bert_impl.serving.page.single_page import attention_page

    output = check_output(config.output_file)
    model = AttentionModel.open(config.model, engine=config.engine, **config.description())
    attentions = model.of_texts(config.texts)
    with open_whole(output) as file:
        file.write(attention_page(attentions))
    layers, heads = attentions[0].probabilities.shape[:2]
    return Explained(len(attentions), layers, heads)
