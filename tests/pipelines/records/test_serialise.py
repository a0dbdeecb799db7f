import numpy as np
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.records.features import pair_features
from pipelines.records.serialise import BlockSerialiser


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
