import numpy as np

from pipelines.pretraining_data.examples import Spans, SpecialIds, gather_examples
from pipelines.records.record_maker import example_features

SPECIAL = SpecialIds(pad=0, cls=101, sep=102, mask=103)
TOKENS = np.arange(10, 30, dtype=np.uint16)


def _spans(*rows: tuple[int, int, int, int]) -> Spans:
    return Spans(*np.array(rows).T)


def test_pairs_are_framed_and_padded():
    rows = gather_examples(TOKENS, _spans((0, 2, 5, 3), (19, 1, 0, 4)), 9, SPECIAL)
    assert rows.ids.tolist() == [
        [101, 10, 11, 102, 15, 16, 17, 102, 0],
        [101, 29, 102, 10, 11, 12, 13, 102, 0],
    ]
    assert rows.lengths().tolist() == [8, 8]


def test_without_pairs_there_is_one_sep():
    rows = gather_examples(TOKENS, _spans((4, 3, 7, 0)), 7, SPECIAL, pairs=False)
    assert rows.ids.tolist() == [[101, 14, 15, 16, 102, 0, 0]]


def test_features_have_the_reference_meaning():
    rows = gather_examples(TOKENS, _spans((0, 2, 5, 3)), 9, SPECIAL)
    features = example_features(rows, np.array([True]))
    assert features["input_mask"].tolist() == [[1, 1, 1, 1, 1, 1, 1, 1, 0]]
    assert features["segment_ids"].tolist() == [[0, 0, 0, 0, 1, 1, 1, 1, 0]]
    assert features["next_sentence_labels"].tolist() == [[1]]


def test_without_pairs_all_segments_are_zero():
    rows = gather_examples(TOKENS, _spans((4, 3, 7, 0)), 7, SPECIAL, pairs=False)
    assert not example_features(rows, np.array([False]))["segment_ids"].any()
