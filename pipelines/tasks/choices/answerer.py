"""Contexts asked of a model of choices: which ending is the best."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.answerer import Answer, Input, Instance, Prepared, RowOutputs
from keras_bert_impl.serving.forms import KnownModel, read_fields
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from pipelines.tasks.choices.files import Choice
from pipelines.tasks.row_form import RowForm, single_rows

if TYPE_CHECKING:
    from pipelines.tasks.choices.task import ChoiceTask


_OUTPUTS = {
    "ending": "the number of the best ending, from 0",
    "probabilities": "of each ending",
    "logits": "one of each ending",
}


class ChoiceForm(RowForm):
    """A context and its endings to the best one.

    Args:
        task: of the model.
        model: its vocabulary.
        max_seq_length: the most tokens of a context with an ending.
    """

    signature, kind = "text", "choice"
    inputs = (
        Input("context", about="what is continued"),
        Input("endings", is_list=True, about="what may follow"),
    )
    outputs = _OUTPUTS
    model_outputs = ("logits",)

    def __init__(self, task: "ChoiceTask", model: KnownModel, max_seq_length: int) -> None:
        self._task, self._length = task, max_seq_length
        self._tokenizer = PlainTokenizer(model.text)

    def prepare(self, instances: Sequence[Instance]) -> Prepared:
        """See `Answerer.prepare`."""
        fields, wanted = read_fields(self.inputs, instances), self._task.num_choices
        for number, endings in enumerate(fields["endings"], start=1):
            if len(endings) != wanted:
                raise UserError(
                    f"instance {number}: `endings` has {len(endings)} texts; this model chooses "
                    f"among {wanted}: give as many."
                )
        pairs = zip(fields["context"], fields["endings"], strict=True)
        choices = [Choice("", context, tuple(endings), None, 0) for context, endings in pairs]
        if not choices:
            return Prepared([])
        rows = self._task.rows(choices, self._tokenizer, self._length, training=False)
        return Prepared(single_rows(rows), rows)

    def finish(self, prepared: Prepared, outputs: Sequence[RowOutputs]) -> list[Answer]:
        """See `Answerer.finish`."""
        if not outputs:
            return []
        found = self.joined(outputs)
        logits = found["logits"].astype(np.float32).tolist()
        answers = self._task.answers((), prepared.state, found)
        return [
            {"ending": one.ending, "probabilities": one.probabilities.tolist(), "logits": own}
            for one, own in zip(answers, logits, strict=True)
        ]
