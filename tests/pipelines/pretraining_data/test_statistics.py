"""Figures of a batch, counted once more example by example."""

import numpy as np
import pytest

from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from pipelines.pretraining_data.recipe import VocabularyFacts
from pipelines.pretraining_data.statistics import PairStatistics

VOCABULARY = Vocabulary([*SPECIAL_TOKENS, "the", "##s", "fox", "hen"])
ID = {token: number for number, token in enumerate(VOCABULARY.tokens)}

# (shown tokens, tokens of A, {masked position: true token}, random next)
EXAMPLES = [
    ("[CLS] the [MASK] [SEP] hen ##s [SEP]", 2, {2: "fox", 5: "##s"}, 0),
    ("[CLS] fox [SEP] the hen [SEP]", 1, {1: "hen"}, 1),
    ("[CLS] the fox ##s the fox [SEP] [MASK] [SEP]", 5, {7: "##s"}, 1),
]
LENGTH, PREDICTIONS = 10, 3


def features() -> dict[str, np.ndarray]:
    """The examples as a pre-training batch."""
    batch = {
        "input_ids": np.zeros((3, LENGTH), np.int64), "input_mask": np.zeros((3, LENGTH), np.int64),
        "segment_ids": np.zeros((3, LENGTH), np.int64),
        "masked_lm_positions": np.zeros((3, PREDICTIONS), np.int64),
        "masked_lm_ids": np.zeros((3, PREDICTIONS), np.int64),
        "masked_lm_weights": np.zeros((3, PREDICTIONS), np.float32),
        "next_sentence_labels": np.array([[example[3]] for example in EXAMPLES]),
    }  # fmt: skip
    for row, (shown, len_a, masked, _) in enumerate(EXAMPLES):
        ids = [ID[token] for token in shown.split()]
        batch["input_ids"][row, : len(ids)] = ids
        batch["input_mask"][row, : len(ids)] = 1
        batch["segment_ids"][row, len_a + 2 : len(ids)] = 1
        for slot, (position, token) in enumerate(masked.items()):
            batch["masked_lm_positions"][row, slot] = position
            batch["masked_lm_ids"][row, slot] = ID[token]
            batch["masked_lm_weights"][row, slot] = 1
    return batch


@pytest.fixture
def statistics() -> PairStatistics:
    found = PairStatistics(LENGTH, PREDICTIONS, VocabularyFacts.of(VOCABULARY))
    found.add(features())
    return found


def test_lengths_are_those_of_the_examples(statistics):
    assert np.flatnonzero(statistics.lengths).tolist() == [6, 7, 9]
    assert np.repeat(np.arange(LENGTH + 1), statistics.lengths_a).tolist() == [1, 2, 5]
    assert np.repeat(np.arange(LENGTH + 1), statistics.lengths_b).tolist() == [1, 2, 2]
    figures = statistics.figures()
    assert figures["mean_length"] == pytest.approx(22 / 3)
    assert figures["sd_length"] == pytest.approx(np.std([6, 7, 9]))
    assert figures["padding"] == pytest.approx(8 / 30)
    assert figures["full_length"] == 0
    assert figures["random_next"] == pytest.approx(2 / 3)


def test_what_is_shown_at_masked_positions_is_told_apart(statistics):
    assert dict(statistics.kinds) == {"kept": 1, "mask": 2, "random": 1}
    figures = statistics.figures()
    shares = [figures[f"share_{kind}"] for kind in ("mask", "kept", "random")]
    assert shares == [0.5, 0.25, 0.25]
    assert figures["masks_per_example"] == pytest.approx(4 / 3)
    assert figures["masked_share"] == pytest.approx(4 / 22)


def test_masked_tokens_are_counted_and_those_that_begin_a_word(statistics):
    assert statistics.whole_labels == 2
    assert statistics.masks.tolist() == [0, 2, 1, 0]


def test_positions_are_counted_by_tenths_of_the_example(statistics):
    expected = np.zeros(10, int)
    for shown, _, masked, _ in EXAMPLES:
        for position in masked:
            expected[10 * position // len(shown.split())] += 1
    assert statistics.deciles.tolist() == expected.tolist()
    assert statistics.shares_of_a.tolist() == [0, 0, 0, 1, 0, 1, 0, 0, 1, 0]
