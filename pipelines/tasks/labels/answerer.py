"""Texts and pairs asked of a classifier: labels with probabilities, or a number."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert_impl.checkpoints.task_settings import (
    long_texts_of,
    num_texts,
    served_length,
    task_settings,
)
from keras_bert_impl.serving.answerer import Answer, Input, Instance, Prepared, RowOutputs
from keras_bert_impl.serving.forms import KnownModel, read_fields
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from pipelines.fine_tuning.heads import ClassificationHead, MultiLabelHead, RegressionHead
from pipelines.fine_tuning.text_rows import TextExample, join_windows, text_rows
from pipelines.tasks.labels.rows import LabelHead
from pipelines.tasks.row_form import RowForm, single_rows

if TYPE_CHECKING:
    from keras_bert_impl.tokenization.tokenizer import SpecialTokens

_LOGITS = {"logits": "one of each label"}
_OUTPUTS = {
    "label": {"label": "the best label", "probabilities": "of each label, in their order"},
    "labels": {"labels": "all labels that hold", "probabilities": "of each label by itself"},
    "number": {"score": "the number"},
}


class LabelForm(RowForm):
    """Texts, or pairs of texts, to a label, labels or a number.

    Args:
        model: a classifier; one label is a regression.
    """

    model_outputs = ("logits",)

    def __init__(
        self, model: KnownModel, tokenizer: PlainTokenizer, max_seq_length: int, *, pairs: bool
    ) -> None:
        self.signature, self._pairs = ("text_pair" if pairs else "text"), pairs
        self.inputs = _inputs(pairs)
        self._labels, self._tokenizer, self._length = model.labels, tokenizer, max_seq_length
        self._long_texts = long_texts_of(model.config)
        self._head: LabelHead
        if len(model.labels) == 1:
            self.kind, self._head = "number", RegressionHead()
        elif model.is_multi_label:
            self.kind, self._head = "labels", MultiLabelHead(model.labels)
        else:
            names = dict(zip(model.labels, model.labels, strict=True))
            self.kind, self._head = "label", ClassificationHead(names)
        self.outputs = _OUTPUTS[self.kind] | ({} if self.kind == "number" else _LOGITS)

    def prepare(self, instances: Sequence[Instance]) -> Prepared:
        """See `Answerer.prepare`."""
        fields = read_fields(self.inputs, instances)
        texts = zip(*fields.values(), strict=True)
        examples = [TextExample("", *some) for some in texts]
        rows = text_rows(examples, self._tokenizer, self._length, self._long_texts)
        return Prepared(single_rows(rows), rows)

    def finish(self, prepared: Prepared, outputs: Sequence[RowOutputs]) -> list[Answer]:
        """See `Answerer.finish`."""
        if not outputs:
            return []
        logits = self.joined(outputs)["logits"].astype(np.float32)
        logits = join_windows(prepared.state, logits, self._long_texts.window_answers)
        if isinstance(self._head, RegressionHead):
            return [{"score": float(one[0])} for one in logits]
        found = (self._head.predictions(logits), self._head.values(logits), logits)
        return [
            {**self._said(best), "probabilities": values, "logits": scores}
            for best, values, scores in zip(*(x.tolist() for x in found), strict=True)
        ]

    def _said(self, best: Any) -> Answer:
        """The best label, or those of which a 1 says that they hold."""
        if self.kind == "label":
            return {"label": self._labels[best]}
        return {"labels": [label for label, holds in zip(self._labels, best, strict=True) if holds]}


def _inputs(pairs: bool) -> tuple[Input, ...]:
    if not pairs:
        return (Input("text", about="a text"),)
    return Input("text_a", about="the first text"), Input("text_b", about="the second text")


def label_forms(model: KnownModel, max_seq_length: int | None = None) -> list[LabelForm]:
    """The forms of a classifier: texts or pairs, as in training; both where it is unknown.

    Args:
        max_seq_length: the most tokens of a row; None is as in training.
    """
    config = model.config
    length = served_length(config, max_seq_length)
    keeps = task_settings(config).get("special_tokens") == "keep"
    special: SpecialTokens = "keep" if keeps else "split"
    tokenizer = PlainTokenizer(model.text, special)
    texts = num_texts(config)
    return [
        LabelForm(model, tokenizer, length, pairs=pairs)
        for pairs in (False, True)
        if texts in (None, 1 + pairs)
    ]
