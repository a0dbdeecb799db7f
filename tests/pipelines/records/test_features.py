import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.errors import UserError
from pipelines.records.features import Feature, example_parser, feature_sizes, pair_features

SIZES = {
    "input_ids": 128, "input_mask": 128, "segment_ids": 128, "masked_lm_positions": 20,
    "masked_lm_ids": 20, "masked_lm_weights": 20, "next_sentence_labels": 1,
}  # fmt: skip


def example(**values: list) -> bytes:
    message = tf.train.Example()
    for name, numbers in values.items():
        feature = message.features.feature[name]
        is_float = any(isinstance(number, float) for number in numbers)
        (feature.float_list if is_float else feature.int64_list).value.extend(numbers)
    return message.SerializeToString()


def test_the_features_are_the_original_s():
    features = pair_features(128, 20)
    assert {feature.name: feature.size for feature in features} == SIZES
    assert [feature.name for feature in features if feature.is_float] == ["masked_lm_weights"]


def test_examples_are_parsed_as_arrays():
    parse = example_parser([Feature("ids", 3), Feature("weight", 1, is_float=True)])
    arrays = parse([example(ids=[1, 2, 3], weight=[0.5]), example(ids=[4, -5, 6], weight=[2.0])])
    assert arrays["ids"].tolist() == [[1, 2, 3], [4, -5, 6]]
    assert arrays["weight"].tolist() == [[0.5], [2.0]]
    assert (arrays["ids"].dtype, arrays["weight"].dtype) == (np.int32, np.float32)


def test_the_sizes_of_an_example_can_be_told_without_knowing_them():
    assert feature_sizes(example(ids=[1, 2, 3], weight=[0.5]), "x") == {"ids": 3, "weight": 1}
    with pytest.raises(UserError, match=r"a\.tfrecord: record 7: is no tf\.train\.Example"):
        feature_sizes(b"text", "a.tfrecord: record 7")
