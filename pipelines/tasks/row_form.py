"""What the forms of all tasks share: their rows as single ones, and outputs as tasks read them.

See `keras_bert_impl.serving.forms` for what a form is.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.serving.answerer import Row, RowOutputs
from keras_bert_impl.serving.forms import Form
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from pipelines.records.rows import Rows


def single_rows(rows: Rows) -> list[Row]:
    """Each row as the model reads it.

    Example:
        >>> tokens = dict.fromkeys(ENCODER_INPUTS, np.array([2, 3, 2], np.int32))
        >>> rows = single_rows(Rows(np.array([0, 1]), np.array([2, 1]), tokens))
        >>> [row["input_ids"].tolist() for row in rows]
        [[2, 3], [2]]
    """
    shape = (-1,) if rows.choices is None else (rows.choices, -1)
    return [
        {name: rows.tokens[name][start:end].reshape(shape) for name in ENCODER_INPUTS}
        for start, end in pairwise(rows.offsets().tolist())
    ]


def truncated_tokens(rows: Rows) -> list[int]:
    """The tokens of each example that are in no row, as `Prepared` has them."""
    return [] if rows.num_truncated is None else rows.num_truncated.tolist()


class RowForm(Form):
    """A form of a task: all the numbers of its model are needed."""

    def joined(self, outputs: Sequence[RowOutputs]) -> Mapping[str, NDArray[Any]]:
        """The outputs of rows in one array each: [rows, ...], or flat where tokens have numbers."""
        return {
            name: (np.concatenate if name in self.token_outputs else np.stack)(
                [one[name] for one in outputs]
            )
            for name in outputs[0]
        }
