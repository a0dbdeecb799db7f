"""What a model cannot look up is refused with the shard, the record and the feature."""

import numpy as np
import pytest

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from pipelines.inputs.pretraining_records import check_batch

CONFIG = BertConfig(vocab_size=50, max_position_embeddings=16)


def batch(**changes):
    features = {
        "input_ids": np.full([2, 8], 3),
        "input_mask": np.ones([2, 8], int),
        "segment_ids": np.zeros([2, 8], int),
        "masked_lm_positions": np.zeros([2, 2], int),
        "masked_lm_ids": np.full([2, 2], 4),
        "masked_lm_weights": np.ones([2, 2], np.float32),
        "next_sentence_labels": np.zeros([2, 1], int),
    }
    return {**features, **changes}


def check(features):
    check_batch(features, CONFIG, lambda row: f"a.tfrecord: record {row + 40}")


def test_a_sound_batch_passes():
    check(batch())
    check(batch(masked_lm_ids=np.zeros([2, 0], int), masked_lm_weights=np.zeros([2, 0])))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("input_ids", -1),
        ("segment_ids", 2),
        ("masked_lm_positions", 8),
        ("input_mask", 7),
        ("masked_lm_weights", np.nan),
    ],
)
def test_what_is_out_of_range_is_refused_with_record_value_and_feature(name, value):
    wrong = batch()[name].copy()
    wrong[1, 0] = value
    with pytest.raises(UserError, match=f"a.tfrecord: record 41 has {value} in {name}"):
        check(batch(**{name: wrong}))
