import dataclasses
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.training.batches import EXAMPLE_WEIGHTS
from pipelines.inputs.pretraining import (
    PretrainingBatches,
    PretrainingEvaluation,
    PretrainingRecords,
    RecordOrder,
    check_batch,
    shuffled,
)
from pipelines.pretraining_data.masking import Targets
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


EXPECTED = Expected(RECIPE.max_seq_length, RECIPE.max_predictions_per_seq)
SOME = np.array([7, 0, 30])


def _sets(folder: Path, **changes) -> str:
    recipe = dataclasses.replace(RECIPE, **changes)
    name = "-".join(f"{key}-{value}" for key, value in changes.items()) or "plain"
    return make_shards(folder, output=f"out/{name}.tfrecord", recipe=recipe).output_file


def _restored(batch: dict[str, np.ndarray]) -> np.ndarray:
    """The ids with the true tokens in their positions."""
    ids = batch["input_ids"].copy()
    row, slot = np.nonzero(batch["masked_lm_weights"])
    ids[row, batch["masked_lm_positions"][row, slot]] = batch["masked_lm_ids"][row, slot]
    return ids


def test_records_of_one_set_are_found_by_their_numbers(tmp_path):
    records = PretrainingRecords([_sets(tmp_path)], EXPECTED, seed=0)
    every = records.batch(np.zeros(len(records), int), np.arange(len(records)))
    some = records.batch(np.zeros(3, int), SOME)
    for name, array in some.items():
        np.testing.assert_array_equal(array, every[name][SOME])
        assert array.dtype == (np.float32 if name == "masked_lm_weights" else np.int32)
    assert records.reader.name(0).endswith("-00000-of-00003: record 0")


def test_predictions_are_filled_up_to_what_the_model_takes(tmp_path):
    path = _sets(tmp_path)
    wide = PretrainingRecords([path], dataclasses.replace(EXPECTED, max_predictions_per_seq=9), 0)
    narrow = PretrainingRecords([path], EXPECTED, 0)
    for name in ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights"):
        filled, plain = (each.batch(np.zeros(3, int), SOME)[name] for each in (wide, narrow))
        assert filled.shape == (3, 9)
        np.testing.assert_array_equal(filled[:, :4], plain)
        assert not filled[:, 4:].any()


def test_dynamic_masks_follow_from_seed_epoch_and_record_alone(tmp_path):
    path = _sets(tmp_path, masking="dynamic")
    records, again, other = (PretrainingRecords([path], EXPECTED, seed) for seed in (1, 1, 2))
    first = records.batch(np.array([0, 1, 2]), SOME)
    for row in range(3):  # alone, as in a batch
        alone = again.batch(np.array([row]), SOME[row : row + 1])
        for name, array in alone.items():
            np.testing.assert_array_equal(array[0], first[name][row])
    for batch in (records.batch(np.array([1, 2, 3]), SOME), other.batch(np.arange(3), SOME)):
        assert (batch["masked_lm_positions"] != first["masked_lm_positions"]).any()
        np.testing.assert_array_equal(_restored(batch), _restored(first))


def test_dynamic_masks_leave_special_tokens_alone(tmp_path):
    records = PretrainingRecords([_sets(tmp_path, masking="dynamic")], EXPECTED, seed=3)
    every = np.arange(len(records))
    batch = records.batch(every % 5, every)
    real = batch["masked_lm_weights"] > 0
    assert set(batch["masked_lm_ids"][real].tolist()).isdisjoint({0, 2, 3, 4})
    lengths = batch["input_mask"].sum(axis=1)
    wanted = np.clip(np.rint(0.15 * lengths), 1, 4)
    np.testing.assert_array_equal(real.sum(axis=1), wanted)


def test_unmasked_records_have_no_predictions(tmp_path):
    records = PretrainingRecords([_sets(tmp_path, masking="none")], EXPECTED, seed=3)
    batch = records.batch(np.zeros(3, int), SOME)
    assert not batch["masked_lm_weights"].any()
    assert batch["masked_lm_weights"].shape == (3, 4)


def test_a_language_model_predicts_every_token_of_unmasked_records(tmp_path):
    expected = dataclasses.replace(EXPECTED, max_predictions_per_seq=30)
    path = _sets(tmp_path, masking="dynamic")
    shown = PretrainingRecords([_sets(tmp_path, masking="none")], EXPECTED, 0).batch(SOME, SOME)
    for objective, step in (("next_token", 1), ("previous_token", -1)):
        batch = PretrainingRecords([path], expected, 0, Targets(objective)).batch(SOME, SOME)
        np.testing.assert_array_equal(batch["input_ids"], shown["input_ids"])  # nothing is hidden
        row, slot = np.nonzero(batch["masked_lm_weights"])
        neighbours = batch["masked_lm_positions"][row, slot] + step
        predicted = batch["masked_lm_ids"][row, slot]
        np.testing.assert_array_equal(shown["input_ids"][row, neighbours], predicted)
        words = ~np.isin(shown["input_ids"], [0, 2, 3])
        assert len(predicted) == words.sum()


def test_records_that_are_masked_stay_what_they_are(tmp_path):
    targets = Targets("next_token")
    with pytest.raises(UserError, match=r"needs unmasked text.* are masked.*masking=dynamic"):
        PretrainingRecords([_sets(tmp_path)], EXPECTED, 0, targets)


def test_dynamic_masks_may_show_something_else_at_the_same_positions(tmp_path):
    path = _sets(tmp_path, masking="dynamic")
    usual = PretrainingRecords([path], EXPECTED, 0).batch(SOME, SOME)
    for shares, shown in (((1.0, 0.0, 0.0), {4}), ((0.0, 1.0, 0.0), None)):
        targets = Targets(mask_probabilities=shares)
        batch = PretrainingRecords([path], EXPECTED, 0, targets).batch(SOME, SOME)
        for name in ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights"):
            np.testing.assert_array_equal(batch[name], usual[name])
        row, slot = np.nonzero(batch["masked_lm_weights"])
        at_masks = batch["input_ids"][row, batch["masked_lm_positions"][row, slot]]
        expected = shown or {*batch["masked_lm_ids"][row, slot].tolist()}
        assert {*at_masks.tolist()} == expected


@pytest.mark.parametrize("change", [{"masking": "none"}, {"do_next_sentence": False}])
def test_sets_that_are_stored_in_other_ways_are_not_mixed(tmp_path, change):
    with pytest.raises(UserError, match="is stored in another way than"):
        PretrainingRecords([_sets(tmp_path), _sets(tmp_path, **change)], EXPECTED, seed=0)


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
