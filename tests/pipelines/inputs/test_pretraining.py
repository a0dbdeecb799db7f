from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.training.batches import EXAMPLE_WEIGHTS
from pipelines.inputs.pretraining import (
    PretrainingBatches,
    PretrainingEvaluation,
    RecordOrder,
    shuffled,
)
from pipelines.records.check import Expected
from tests.support.pretraining_corpus import RECIPE, make_shards


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 5000), st.integers(0, 2**64 - 1))
def test_every_record_has_one_place(size, key):
    order = shuffled(np.arange(size), size, np.uint64(key))
    assert sorted(order.tolist()) == list(range(size))


def test_neighbours_are_scattered():
    order = shuffled(np.arange(10_000), 10_000, np.uint64(1)).astype(float)
    assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.05
    assert abs(np.corrcoef(order, np.arange(10_000))[0, 1]) < 0.05


@pytest.mark.parametrize("shuffle", [True, False])
def test_every_epoch_holds_every_record_once(shuffle):
    epochs, records = RecordOrder(37, seed=4, shuffle=shuffle).at(np.arange(37 * 3))
    for epoch in range(3):
        assert sorted(records[epochs == epoch].tolist()) == list(range(37))


def test_epochs_differ_when_shuffled():
    _, records = RecordOrder(100, seed=4).at(np.arange(200))
    assert (records[:100] != records[100:]).any()
    _, again = RecordOrder(100, seed=5).at(np.arange(100))
    assert (records[:100] != again).any()


GOLDEN = Path(__file__).parents[2] / "golden" / "pretrain" / "train.tfrecord"
SHAPE = Expected(RECIPE.max_seq_length, RECIPE.max_predictions_per_seq)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> str:
    return make_shards(tmp_path_factory.mktemp("static")).output_file


def _same(first, second) -> bool:
    return first.keys() == second.keys() and all((first[k] == second[k]).all() for k in first)


def test_batches_have_the_reference_features(made):
    batch = PretrainingBatches([made], 4, SHAPE, seed=1).batch_at(0)
    assert {name: (array.shape, array.dtype.name) for name, array in batch.items()} == {
        "input_ids": ((4, 32), "int32"),
        "input_mask": ((4, 32), "int32"),
        "segment_ids": ((4, 32), "int32"),
        "masked_lm_positions": ((4, 4), "int32"),
        "masked_lm_ids": ((4, 4), "int32"),
        "masked_lm_weights": ((4, 4), "float32"),
        "next_sentence_labels": ((4, 1), "int32"),
    }


def test_any_step_can_be_entered(made):
    stream = PretrainingBatches([made], 4, SHAPE, seed=1).batches_from(0)
    passed = [next(stream) for _ in range(100)]
    again = PretrainingBatches([made], 4, SHAPE, seed=1)
    for step in (0, 7, 99):
        assert _same(next(again.batches_from(step)), passed[step])


def test_an_epoch_holds_every_example_once(made):
    batches = PretrainingBatches([made], 1, SHAPE, seed=1)
    count = batches.num_examples
    seen = {tuple(batches.batch_at(step)["input_ids"][0].tolist()) for step in range(count)}
    evaluation = PretrainingEvaluation([made], 1, SHAPE)
    assert seen == {tuple(batch["input_ids"][0].tolist()) for batch in evaluation.batches()}


def test_the_original_s_shards_are_read_without_a_description(tmp_path):
    batches = PretrainingBatches([str(GOLDEN)], 8, Expected(64, 10), seed=0, shuffle=False)
    assert batches.num_examples == 480
    assert batches.batch_at(0)["input_ids"][:, 0].tolist() == [2] * 8


def recorded():
    """The recorded examples, to be changed."""
    for content in tf.data.TFRecordDataset(str(GOLDEN)):
        yield tf.train.Example.FromString(content.numpy())


def written(path, contents):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for content in contents:
            writer.write(content)
    return str(path)


def fewer_predictions(example):
    for name, feature in example.features.feature.items():
        if name.startswith("masked"):
            del (feature.float_list.value or feature.int64_list.value)[5:]
    return example.SerializeToString()


def test_records_for_fine_tuning_are_refused(tmp_path):
    def tuned(example):
        for name in [n for n in example.features.feature if n.startswith(("masked", "next"))]:
            del example.features.feature[name]
        return example.SerializeToString()

    path = written(tmp_path / "tuned.tfrecord", map(tuned, recorded()))
    with pytest.raises(UserError, match=r"tuned\.tfrecord: its examples have no masked_lm_\w+, so"):
        PretrainingBatches([path], 8, Expected(64, 10), seed=0)


def test_bare_shards_with_other_numbers_of_predictions_are_not_mixed(tmp_path):
    path = written(tmp_path / "fewer.tfrecord", map(fewer_predictions, recorded()))
    with pytest.raises(UserError, match=r"fewer\.tfrecord: stores 5 predictions .* it 10; read"):
        PretrainingBatches([str(GOLDEN), path], 8, Expected(64, 10), seed=0)


def test_a_record_of_any_bytes_is_named(tmp_path):
    contents = [example.SerializeToString() for example in recorded()]
    contents[5] = b"\xd7H\x9d\xc5&X\xdeL\xd5"  # TensorFlow's message repeats them
    batches = PretrainingBatches(
        [written(tmp_path / "odd.tfrecord", contents)], 8, Expected(64, 10), seed=0, shuffle=False
    )
    with pytest.raises(UserError, match=r"record 5: is no example of the form of the first one"):
        batches.batch_at(0)


def test_workers_shares_make_up_the_batch_and_each_names_all_of_it():
    whole = PretrainingBatches([str(GOLDEN)], 9, Expected(64, 10), seed=1)
    shares = [
        PretrainingBatches([str(GOLDEN)], 9, Expected(64, 10), seed=1, worker=n, num_workers=2)
        for n in range(2)
    ]
    together = [share.batch_at(5) for share in shares]
    assert [len(part["input_ids"]) for part in together] == [5, 4]
    for name, values in whole.batch_at(5).items():
        assert np.array_equal(np.concatenate([part[name] for part in together]), values)
    assert shares[1].where(5) == whole.where(5)


def test_evaluation_is_one_pass_with_a_padded_last_batch(made):
    evaluation = PretrainingEvaluation([made], 50, SHAPE)
    batches = list(evaluation.batches())
    assert len(batches) == evaluation.num_batches
    assert {len(batch["input_ids"]) for batch in batches} == {50}
    real = np.concatenate([batch[EXAMPLE_WEIGHTS] for batch in batches])
    assert real.sum() == evaluation.num_examples
    assert (np.diff(real) <= 0).all()
