import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from pipelines.records.serialise import (
    BlockSerialiser,
    Feature,
    example_parser,
    feature_sizes,
    pair_features,
)

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


def _block(rng: np.random.Generator, examples: int, length: int, predictions: int, ids: int):
    return {
        "input_ids": rng.integers(0, ids, (examples, length)) % rng.integers(1, ids, (examples, 1)),
        "input_mask": rng.integers(0, 2, (examples, length)),
        "segment_ids": rng.integers(0, 2, (examples, length)),
        "masked_lm_positions": rng.integers(0, length, (examples, predictions)),
        "masked_lm_ids": rng.integers(0, ids, (examples, predictions)),
        "masked_lm_weights": rng.integers(0, 2, (examples, predictions)).astype(np.float32),
        "next_sentence_labels": rng.integers(0, 2, (examples, 1)),
    }


def _values(content: bytes) -> dict[str, list]:
    features = tf.train.Example.FromString(content).features.feature
    return {
        name: list(feature.float_list.value or feature.int64_list.value)
        for name, feature in features.items()
    }


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from([(8, 1), (16, 2), (63, 9), (64, 10), (128, 20), (129, 20), (512, 77)]),
    st.sampled_from([120, 1000, 30_522, 119_547, 2_500_000]),
)
def test_tensorflow_reads_what_was_written(tmp_path_factory, seed, shape, ids):
    length, predictions = shape
    rng = np.random.default_rng(seed)
    serialiser = BlockSerialiser(pair_features(length, predictions, ids))
    for examples in (5, 1, 9):  # buffers are used again for smaller and larger blocks
        block = _block(rng, examples, length, predictions, ids)
        data, sizes = serialiser.frames(block)
        path = tmp_path_factory.mktemp("frames") / "x.tfrecord"
        path.write_bytes(data.tobytes())
        records = [record.numpy() for record in tf.data.TFRecordDataset(str(path))]
        assert [len(record) + 16 for record in records] == sizes.tolist()
        for row, record in enumerate(records):
            expected = {name: array[row].tolist() for name, array in block.items()}
            assert _values(record) == expected
            assert len(tf.train.Example.FromString(record).SerializeToString()) == len(record)
