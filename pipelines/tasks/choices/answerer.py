"""Contexts asked of a model of choices: which ending is the best."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.answerer import Answer, Input, Instance, Prepared, RowOutputs
from keras_bert_impl.serving.forms import KnownModel, read_fields
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from pipelines.records.rows import Rows
from pipelines.tasks.choices.files import Choice
from pipelines.tasks.choices.options import ANY_NUMBER
from pipelines.tasks.row_form import RowForm, single_rows

if TYPE_CHECKING:
    from pipelines.tasks.choices.task import ChoiceTask


_OUTPUTS = {
    "ending": "the number of the best ending, from 0",
    "probabilities": "of each ending",
    "logits": "one of each ending",
}


class ChoiceForm(RowForm):
    """A context and its endings to the best one."""

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
        fields = read_fields(self.inputs, instances)
        for number, endings in enumerate(fields["endings"], start=1):
            self._check_count(number, len(endings))
        pairs = zip(fields["context"], fields["endings"], strict=True)
        choices = [
            Choice("", context, some, None, 0)
            for context, endings in pairs
            for some in self._of_rows(endings)
        ]
        if not choices:
            return Prepared([])
        rows = self._task.rows(choices, self._tokenizer, self._length, training=False)
        counts = [len(endings) for endings in fields["endings"]]
        return Prepared(single_rows(rows), (rows, counts))

    def _check_count(self, number: int, endings: int) -> None:
        wanted = self._task.num_choices
        if wanted == ANY_NUMBER and endings < 2:
            raise UserError(
                f"instance {number}: `endings` has {endings} texts; give two or more to choose "
                "among."
            )
        if wanted not in (ANY_NUMBER, endings):
            raise UserError(
                f"instance {number}: `endings` has {endings} texts; this model chooses among "
                f"{wanted}: give as many."
            )

    def _of_rows(self, endings: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """The endings of each row."""
        own = self._task.num_choices
        return (tuple(endings[place : place + own]) for place in range(0, len(endings), own))

    def finish(self, prepared: Prepared, outputs: Sequence[RowOutputs]) -> list[Answer]:
        """See `Answerer.finish`."""
        if not outputs:
            return []
        rows, counts = prepared.state
        flat = self.joined(outputs)["logits"].astype(np.float32).reshape(-1)
        return [self._answer(rows, one) for one in np.split(flat, np.cumsum(counts)[:-1])]

    def _answer(self, rows: Rows, logits: NDArray[np.float32]) -> Answer:
        (best,) = self._task.answers((), rows, {"logits": logits[None]})
        return {
            "ending": best.ending,
            "probabilities": best.probabilities.tolist(),
            "logits": logits.tolist(),
        }
