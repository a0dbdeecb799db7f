"""The options of a run that trains vectors of texts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from keras_bert_impl.checkpoints.task_settings import without_task
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.head_settings import POOLINGS
from keras_bert_impl.options import FREE, Options, Rules, nested, option
from pipelines.corpora.encodings import TextEncoding
from pipelines.fine_tuning.options import FineTuningConfig, SplitFiles
from pipelines.tasks.vectors.files import CLASSES, MARGINS, PAIRS, SCORES, TRIPLES

LOSSES_OF: Mapping[str, tuple[str, ...]] = {
    PAIRS: ("mnrl", "mnrl_symmetric", "mnrl_all"),
    TRIPLES: ("mnrl", "mnrl_symmetric", "mnrl_all", "triplet"),
    SCORES: ("cosent", "angle", "cosine", "contrastive", "online_contrastive"),
    MARGINS: ("margin_mse",),
    CLASSES: ("batch_hard", "mnrl", "mnrl_symmetric"),
}
"""The losses that suit each kind of data, the default first."""

_Size = Annotated[int, Rules(sentence="", at_least=1)]


@dataclass(frozen=True, kw_only=True)
class VectorFilesConfig(SplitFiles):
    """Files of texts, and where they have what."""

    train_file: str | None = option(
        None,
        "Texts to train on: CSV, TSV or JSON (an object a line, or an array), plain or packed. A "
        "row is a query and its document, perhaps with negatives; two texts and a number that says "
        "how alike they are; two texts and entailment, neutral or contradiction; or a text and its "
        "class.",
        resume=FREE,  # the content is compared
    )
    dev_file: str | None = option(None, "Texts to evaluate, in any of these forms.", resume=FREE)
    test_file: str | None = option(None, "More texts to evaluate.", resume=FREE)
    query_column: str | None = option(
        None,
        "The column of the query, or of the first text: its name, or its number from 1 where the "
        "file has no header. By default guessed where it is plain.",
    )
    document_column: str | None = option(
        None,
        "The column of the document, or of the second text; nothing (document_column=) where texts "
        "have classes.",
    )
    negative_column: tuple[str, ...] = option(
        (),
        "The columns of documents that do not answer the query, separated by commas; in JSON one "
        "may hold a list. By default those called negative, negative_1, hard_negative, ...",
    )
    label_column: str | None = option(
        None, "The column of the number or class; nothing (label_column=) where none shall be read."
    )
    text_encoding: TextEncoding = nested(TextEncoding)

    @property
    def has_header(self) -> bool:
        """Whether the first line of CSV and TSV names the columns: none is given by a number."""
        named = (self.query_column, self.document_column, *self.negative_column, self.label_column)
        return not any(name.isdecimal() for name in named if name)


@dataclass(frozen=True, kw_only=True)
class MiningConfig(Options):
    """Hard negatives, found by the vectors that training starts from."""

    mine_negatives: int = option(
        0,
        "Add so many documents to each row that are near its query and do not answer it, found "
        "once, before training, by the model that it starts from.",
        at_least=0,
        at_most=100,
    )
    mine_from: int = option(1, "The first rank of a negative; better ones may answer.", at_least=1)
    mine_to: int = option(100, "The last rank of a negative.", at_least=1)
    mine_margin: float = option(0.0, "By how much a negative's cosine is below the document's.")
    mine_relative_margin: float = option(
        0.05,
        "By which share of the cosine of the query's own document a negative's must be below it.",
        at_least=0,
        at_most=1,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mine_to - self.mine_from + 1 < self.mine_negatives:
            raise UserError(
                f"`mine_negatives={self.mine_negatives}` are more than the ranks from "
                f"{self.mine_from} to {self.mine_to}; raise `mine_to`."
            )


@dataclass(frozen=True, kw_only=True)
class RunEmbedderConfig(FineTuningConfig):
    """The options of a run that trains vectors."""

    # Refused below, and not shown.
    do_predict: bool = option(False, "", resume=FREE)
    encoder_bilstm: bool = option(False, "")
    files: VectorFilesConfig = nested(VectorFilesConfig)
    loss: str | None = option(
        None,
        "What is trained for. Pairs and triples: mnrl (default; the documents of the other rows "
        "are negatives), mnrl_symmetric (queries are those of documents, too), mnrl_all (also of "
        "one another), triplet. Numbers: cosent (default), angle, cosine, "
        "contrastive, online_contrastive (0 or 1). Margins of a teacher: margin_mse. Classes: "
        "batch_hard (default), mnrl.",
        choices=tuple(dict.fromkeys(name for names in LOSSES_OF.values() for name in names)),
    )
    similarity: str | None = option(
        None,
        "How vectors are compared in mnrl, cosent and margin_mse: cosine (the default but of "
        "margin_mse) or dot.",
        choices=("cosine", "dot"),
    )
    similarity_scale: float | None = option(
        None,
        "What similarities are multiplied by in mnrl, cosent and angle: by default 20, and 1 where "
        "mnrl or cosent compares by products of vectors that are not scaled to length 1.",
        more_than=0,
    )
    loss_margin: float | None = option(
        None, "The margin of triplet (5), contrastive and online_contrastive (0.5).", more_than=0
    )
    score_range: tuple[float, ...] = option(
        (),
        "The least and the greatest score that there may be, separated by a comma: they are 0 and "
        "1 in the loss cosine. By default guessed: 0,1, -1,1 (cosines, which stay as they are), "
        "0,5, 0,100, or what the training file has.",
    )
    matryoshka_dims: tuple[_Size, ...] = option(
        (),
        "Train vectors whose first numbers are vectors themselves: the sizes, separated by commas, "
        "beside the whole one. They are kept in the model, and evaluated.",
    )
    pooling: str | None = option(
        None,
        "The vector of a text: mean of its tokens, cls, or pooler; by default as in the model "
        "before training, else mean.",
        choices=POOLINGS,
    )
    normalize: bool | None = option(
        None, "Scale vectors to length 1; by default as the model before training, else not."
    )
    query_prompt: str | None = option(
        None, "What is written in front of queries; by default as in the model before training."
    )
    document_prompt: str | None = option(None, "What is written in front of documents.")
    texts_at_once: int = option(
        32,
        "How many texts are computed together. All of a batch are compared with each other; with "
        "accumulation_steps above 1 each is computed twice, and memory is that of so many texts.",
        at_least=1,
    )
    mining: MiningConfig = nested(MiningConfig)
    OF_FILES: ClassVar = (
        *("query_column", "document_column", "negative_column", "label_column", "encoding"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.files.names_files:
            raise UserError("nothing says what to learn; give `train_file`, a table of texts.")
        if self.do_predict:
            raise UserError("`do_predict`: vectors are written by the tool embed; leave it out.")
        if self.encoder_bilstm:
            raise UserError("`encoder_bilstm`: vectors have no head; leave it out.")
        are_two = len(self.score_range) == 2
        if self.score_range and not (are_two and self.score_range[0] < self.score_range[1]):
            raise UserError("`score_range`: give two numbers, the least and then the greatest.")

    def configure(self, config: BertConfig) -> BertConfig:
        return without_task(config)

    def loss_options(self, loss: str) -> dict[str, Any]:
        """A loss's own settings, those that were given."""
        given = {
            "scale": self.similarity_scale,
            "similarity": self.similarity,
            "triplet_margin" if loss == "triplet" else "margin": self.loss_margin,
        }
        return {name: value for name, value in given.items() if value is not None}
