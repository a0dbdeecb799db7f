"""Texts with labels as rows, and logits as answers: of files, and of what a server is asked."""

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.checkpoints.task_settings import (
    long_texts_of,
    num_texts,
    served_length,
    task_settings,
)
from keras_bert_impl.errors import UserError
from keras_bert_impl.json_files import bounded_loads
from keras_bert_impl.serving.answerer import Answer, Input, Instance, Prepared, RowOutputs
from keras_bert_impl.serving.forms import KnownModel, read_fields
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from keras_bert_impl.training.learning_curve import CurveStyle
from pipelines.fine_tuning import heads
from pipelines.fine_tuning.task import Answered, Facts
from pipelines.fine_tuning.text_rows import TextExample, join_windows, text_rows
from pipelines.metrics.guessing import Guessing, constant_answer
from pipelines.records.rows import Rows
from pipelines.tables.writing import digits
from pipelines.tasks.row_form import RowForm, single_rows, truncated_tokens

if TYPE_CHECKING:
    from keras_bert_impl.tokenization.tokenizer import SpecialTokens

_LOGGER = logging.getLogger(__name__)

_GUESSED: Mapping[type[heads.LabelHead], str] = {
    heads.ClassificationHead: "always the most frequent class",
    heads.MultiLabelHead: "always the labels that most examples have",
    heads.RegressionHead: "always the mean",
}
_COARSE = 1e-3  # a step of float32 may be so much of the labels' deviation without a word


class LabelAnswer(NamedTuple):
    """A model's answer to an example."""

    label: str  # as a submission has it
    prediction: Any  # the class, a 0 or 1 for each label, or the number
    values: np.ndarray  # the probabilities, float64, or [the number]


Labelled = Answered[TextExample, LabelAnswer]


class LabelTask(heads.TextTask):
    """The part of a task that depends on its labels only; files and figures are the task's own."""

    examples: Callable[[str], Iterable[TextExample]]  # reads a split; see `Task.examples`

    @property
    def curve_style(self) -> CurveStyle:
        """Draws all figures; of several labels at once training's accuracy is another figure."""
        several = isinstance(self.head_of, heads.MultiLabelHead)
        return CurveStyle(trained=() if several else ("accuracy",))

    def guessing(self, split: str) -> Guessing:
        labels = self.head_of.encode_all([str(one.label) for one in self.examples(split)])
        answer = LabelAnswer("", constant_answer(labels), np.array([]))
        is_number = isinstance(self.head_of, heads.RegressionHead)
        loss = float(np.var(labels, dtype=np.float64)) if is_number else None
        words = _GUESSED[type(self.head_of)]
        return Guessing(words, [(one, answer) for one in self.examples(split)], loss)

    def facts(self, example: TextExample) -> Facts:
        if example.label is None or isinstance(self.head_of, heads.RegressionHead):
            return Facts(None, example.line, example.note)
        several = isinstance(self.head_of, heads.MultiLabelHead)
        classes = bounded_loads(example.label) if several else [example.label]
        return Facts(classes, example.line, example.note)

    def answers(
        self, examples: Sequence[TextExample], rows: Rows, outputs: Mapping[str, NDArray]
    ) -> list[LabelAnswer]:
        del examples
        head, logits = self.head_of, self.joined(rows, outputs)["logits"]
        parts = head.decode(logits), head.predictions(logits), head.values(logits)
        return [LabelAnswer(*answer) for answer in zip(*parts, strict=True)]


def label_units(examples: Iterable[TextExample], where: object) -> tuple[float, float]:
    """The mean and the deviation of a training split's numbers, read once, in float64."""
    count, mean, squares, ends = 0, 0.0, 0.0, (math.inf, -math.inf)
    for count, example in enumerate(examples, start=1):
        label = float(str(example.label))
        ends = min(label, ends[0]), max(label, ends[1])
        number = float(np.float32(label))  # as the loss sees it
        before = number - mean  # Welford's way: thousands with little between them keep it
        mean += before / count
        squares += before * (number - mean)
    deviation = math.sqrt(squares / max(count, 1))
    mean = float(np.float32(mean))  # as the model adds it
    step = float(np.spacing(np.float32(abs(mean))))
    coarse = (
        f"{where}: the labels are numbers from {ends[0]:.15g} to {ends[1]:.15g}, near which "
        f"those of float32, which models give, are {digits(step)} apart; take a constant such as "
        f"{mean:.3g} from all labels, and add it to the answers."
    )
    if ends[0] == ends[1]:
        raise UserError(
            f"{where}: all rows to train on have the number {digits(mean)}, so that there is "
            "nothing to learn; add rows with other numbers, or give another `dev_seed`."
        )
    if squares <= 0.0:
        raise UserError(coarse)
    if step > _COARSE * deviation:
        _LOGGER.warning("%s", coarse)
    units = digits(mean), digits(deviation)
    _LOGGER.info("labels: mean %s, deviation %s; they are learned in these units.", *units)
    return mean, deviation


LABEL_PROBABILITIES = "label_probabilities"
"""Labels beside their probabilities, for who reads an answer; columns and exports have none."""

_TEXT = (Input("text", about="a text"),)
_PAIR = (Input("text_a", about="the first text"), Input("text_b", about="the second text"))
_LOGITS = {"logits": "one of each label"}
_OUTPUTS = {
    "label": {"label": "the best label", "probabilities": "of each label, in their order"},
    "labels": {"labels": "all labels that hold", "probabilities": "of each label by itself"},
    "number": {"score": "the number"},
}


class LabelForm(RowForm):
    """Texts, or pairs of texts, to a label, labels or a number (where the model has one label)."""

    model_outputs = ("logits",)

    def __init__(
        self, model: KnownModel, tokenizer: PlainTokenizer, max_seq_length: int, *, pairs: bool
    ) -> None:
        self.signature, self._pairs = ("text_pair" if pairs else "text"), pairs
        self.inputs = _PAIR if pairs else _TEXT
        self._labels, self._tokenizer = model.labels, tokenizer
        self.max_seq_length = max_seq_length
        self._long_texts = long_texts_of(model.config)
        self.has_windows = self._long_texts.has_windows
        self._head: heads.LabelHead
        if len(model.labels) == 1:
            self.kind, self._head = "number", heads.RegressionHead()
        elif model.is_multi_label:
            self.kind, self._head = "labels", heads.MultiLabelHead(model.labels)
        else:
            names = dict(zip(model.labels, model.labels, strict=True))
            self.kind, self._head = "label", heads.ClassificationHead(names)
        self.outputs = _OUTPUTS[self.kind] | ({} if self.kind == "number" else _LOGITS)

    def prepare(self, instances: Sequence[Instance]) -> Prepared:
        fields = read_fields(self.inputs, instances)
        examples = [TextExample("", *some) for some in zip(*fields.values(), strict=True)]
        rows = text_rows(examples, self._tokenizer, self.max_seq_length, self._long_texts)
        return Prepared(single_rows(rows), rows, truncated_tokens(rows))

    def finish(self, prepared: Prepared, outputs: Sequence[RowOutputs]) -> list[Answer]:
        logits = self.joined(outputs)["logits"].astype(np.float32)
        logits = join_windows(prepared.state, logits, self._long_texts.window_answers)
        if isinstance(self._head, heads.RegressionHead):
            return [{"score": float(one[0])} for one in logits]
        found = (self._head.predictions(logits), self._head.values(logits), logits)
        return [
            {
                **self._said(best),
                "probabilities": values,
                "logits": scores,
                LABEL_PROBABILITIES: sorted(
                    map(list, zip(self._labels, values, strict=True)), key=lambda pair: -pair[1]
                ),
            }
            for best, values, scores in zip(*(x.tolist() for x in found), strict=True)
        ]

    def _said(self, best: Any) -> Answer:
        """The best label, or those of which a 1 says that they hold."""
        if self.kind == "label":
            return {"label": self._labels[best]}
        return {"labels": [label for label, holds in zip(self._labels, best, strict=True) if holds]}


def label_forms(model: KnownModel, max_seq_length: int | None = None) -> list[LabelForm]:
    """The forms of a classifier: texts or pairs, as in training; both where it is unknown."""
    config = model.config
    length = served_length(config, max_seq_length)
    keeps = task_settings(config).get("special_tokens") == "keep"
    special: SpecialTokens = "keep" if keeps else "split"
    tokenizer = PlainTokenizer(model.text, special)
    return [
        LabelForm(model, tokenizer, length, pairs=pairs)
        for pairs in (False, True)
        if num_texts(config) in (None, 1 + pairs)
    ]
