"""Which tokens a language model predicts: masked ones, or each one from the tokens on one side.

The paper's left-to-right ablation (section 5.1) is trained as a standard language model. It is fed
with the unmasked pairs of a dynamic recipe, and a prediction stands in the fields of a masked one:
at a position of the text, the token that comes next to it.
"""

from dataclasses import dataclass

import numpy as np

from pipelines.pretraining_data.examples import PaddedExamples
from pipelines.pretraining_data.masking import Masked, ordinary_tokens

MASKED_LM, NEXT_TOKEN, PREVIOUS_TOKEN = "masked_lm", "next_token", "previous_token"
OBJECTIVES = (MASKED_LM, NEXT_TOKEN, PREVIOUS_TOKEN)


@dataclass(frozen=True)
class Targets:
    """The prediction targets of a run.

    Attributes:
        objective: one of `OBJECTIVES`; all but masked_lm take unmasked records.
        mask_probabilities: shares of masked tokens that become [MASK], stay, or become a random
            token, where masking is dynamic; by default what the shards' recipe says.
    """

    objective: str = MASKED_LM
    mask_probabilities: tuple[float, float, float] | None = None


def most_predictions(max_seq_length: int) -> int:
    """Predictions of a full record: all its tokens but [CLS] and one [SEP]."""
    return max_seq_length - 2


def predict_neighbours(examples: PaddedExamples, objective: str) -> Masked:
    """Every token of the text as the prediction at the position in front of it, or after it.

    [CLS], [SEP] and padding are never predicted, as they are never masked.

    Example:
        >>> ids = np.array([[1, 50, 51, 2, 60, 2, 0]])
        >>> examples = PaddedExamples(ids, len_a=np.array([2]), len_b=np.array([1]))
        >>> found = predict_neighbours(examples, NEXT_TOKEN)
        >>> found.positions.tolist(), found.ids.tolist()
        ([[0, 1, 3, 0, 0]], [[50, 51, 60, 0, 0]])
    """
    chosen = ordinary_tokens(examples)  # [examples, length]
    counts = np.count_nonzero(chosen, axis=1)
    row, position = np.nonzero(chosen)  # ordered by row, then by position
    slot = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    shape = (len(counts), most_predictions(examples.ids.shape[1]))
    positions, ids = np.zeros(shape, np.int64), np.zeros(shape, examples.ids.dtype)
    positions[row, slot] = position + (-1 if objective == NEXT_TOKEN else 1)
    ids[row, slot] = examples.ids[row, position]
    return Masked(positions, ids, counts)
