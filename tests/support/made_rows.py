"""Rows of made questions with logits, for tests of what chooses answers."""

import numpy as np

from pipelines.records.rows import Rows


def made_rows(*windows):
    """Rows of questions without a text: (question, tokens of the passage, which are owned).

    Each is [CLS], [SEP], the passage's tokens, [SEP].
    """
    lengths = np.array([tokens + 3 for _, tokens, _ in windows])
    text_end, owned = [], []
    for _, tokens, chosen in windows:
        text_end += [0, 0, *range(1, tokens + 1), 0]
        owned += [0, 0, *(int(x in chosen) for x in range(tokens)), 0]
    ends, ids = np.array(text_end, np.int32), np.ones(len(text_end), np.int32)
    tokens = {
        "input_ids": ids,
        "text_start": np.maximum(ends - 1, 0),
        "text_end": ends,
        "is_max_context": np.array(owned, np.int32),
    }
    return Rows(np.array([question for question, _, _ in windows]), lengths, tokens)
