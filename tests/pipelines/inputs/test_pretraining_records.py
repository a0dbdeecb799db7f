"""What a model cannot look up is refused with the shard, the record and the feature."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from pipelines.inputs.pretraining_records import PretrainingRecords, check_batch
from pipelines.pretraining_data.masking import Targets
from pipelines.records.check import Expected
from tests.support.pretraining_corpus import RECIPE, make_shards

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
