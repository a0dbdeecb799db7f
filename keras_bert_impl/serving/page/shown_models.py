"""Models as the page shows them: what they answer, their tokens, and their attention."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_impl.engines.config import TENSORFLOW
from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.answerer import Answerer, AnsweringModel, Instance, Row
from keras_bert_impl.serving.attention import AttentionModel, tokens_of
from keras_bert_impl.serving.page.single_page import written_attention
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from keras_bert_impl.tokenization.vocabulary import Vocabulary

_MOST_ROWS = 50  # of one text: windows of a passage without end
_VOCABULARIES = ("vocab.txt", "tokenizer.json")
_NO_ATTENTION = (
    "This export gives its outputs and not its attention; open the model directory that it was "
    "made from to see it."
)


@dataclass(frozen=True)
class ShownModel:
    """A model, and what shows its inside.

    Attributes:
        model: answers.
        vocabulary: of its ids; None where its folder has none.
        attention: gives its attention, or a sentence that says why it cannot.
    """

    model: AnsweringModel
    vocabulary: Vocabulary | None
    attention: AttentionModel | str

    def description(self, name: str) -> dict[str, Any]:
        """What the page must know to show its panels, as JSON values."""
        return {
            "name": name,
            "description": dict(self.model.description),
            "signatures": [_signature(one) for one in self.model.answerers.values()],
            "attention": self.attention if isinstance(self.attention, str) else None,
        }

    def tokens(self, answerer: Answerer, instance: Instance) -> dict[str, Any]:
        """The rows that an instance becomes, with their tokens and ids, as JSON values."""
        if self.vocabulary is None:
            raise UserError("the model's folder has no vocabulary; its tokens have no names.")
        rows = list(islice(rows_of(answerer, instance), _MOST_ROWS))
        return {"rows": [_token_row(row, self.vocabulary) for row in rows]}

    def attend(self, answerer: Answerer, instance: Instance) -> dict[str, Any]:
        """The attention of the first row that an instance becomes, as JSON values."""
        if isinstance(self.attention, str):
            raise UserError(self.attention)
        rows = list(islice(rows_of(answerer, instance), _MOST_ROWS))
        return {**written_attention(self.attention.of_row(rows[0])), "rows": len(rows)}


def show_model(
    path: str | os.PathLike[str],
    model: AnsweringModel,
    *,
    engine: str = TENSORFLOW,
    **description: Any,
) -> ShownModel:
    """Adds to an open model what shows its inside."""
    try:
        attention = AttentionModel.open(path, engine=engine, **description)
        return ShownModel(model, attention.vocabulary, attention)
    except UserError:
        return ShownModel(model, _vocabulary_beside(Path(path)), _NO_ATTENTION)


def _vocabulary_beside(folder: Path) -> Vocabulary | None:
    for name in _VOCABULARIES:
        if (folder / name).exists():
            return Vocabulary.load(folder / name)
    return None


def rows_of(answerer: Answerer, instance: Instance) -> Iterator[Row]:
    """The encoder's inputs of each row of an instance, without padding; of choices one by one."""
    for row in answerer.prepare([instance]).rows:
        ids = np.atleast_2d(row["input_ids"])
        mask = np.atleast_2d(row["input_mask"])
        segments = np.atleast_2d(row.get("segment_ids", ids * 0))
        for parts in zip(ids, mask, segments, strict=True):
            length = int(np.flatnonzero(parts[1])[-1]) + 1
            yield dict(zip(ENCODER_INPUTS, (part[:length] for part in parts), strict=True))


def _token_row(row: Row, vocabulary: Vocabulary) -> dict[str, Any]:
    ids = row["input_ids"]
    return {
        "tokens": list(tokens_of(ids, vocabulary)),
        "ids": ids.tolist(),
        "segments": row["segment_ids"].tolist(),
    }


def _signature(answerer: Answerer) -> dict[str, Any]:
    fields = [
        {"name": one.name, "is_list": one.is_list, "needed": one.needed, "about": one.about}
        for one in answerer.inputs
    ]
    return {
        "signature": answerer.signature,
        "kind": answerer.kind,
        "inputs": fields,
        "outputs": list(answerer.outputs),
    }
