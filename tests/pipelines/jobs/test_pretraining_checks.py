import math

import numpy as np
import pytest

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.training.config import TrainingConfig
from pipelines.jobs.pretraining_checks import (
    check_batch,
    check_disk,
    check_length,
    check_memory,
    frequency_loss,
)
from pipelines.jobs.pretraining_phases import PhaseConfig

CONFIG = BertConfig(vocab_size=50, max_position_embeddings=16)


def batch(**changes):
    features = {
        "input_ids": np.full([2, 8], 3),
        "segment_ids": np.zeros([2, 8], int),
        "masked_lm_positions": np.zeros([2, 2], int),
        "masked_lm_ids": np.full([2, 2], 4),
        "next_sentence_labels": np.zeros([2, 1], int),
    }
    return {**features, **changes}


def test_a_sound_batch_passes():
    check_batch(batch(), CONFIG, "a.tfrecord")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("input_ids", 50),
        ("masked_lm_ids", 99),
        ("segment_ids", 2),
        ("masked_lm_positions", 8),
        ("next_sentence_labels", 2),
        ("input_ids", -1),
    ],
)
def test_what_the_models_tables_do_not_have_is_refused_with_record_and_feature(name, value):
    wrong = batch()[name].copy()
    wrong[1, 0] = value
    with pytest.raises(UserError, match=f"a.tfrecord: record 1 of the first batch has {name}"):
        check_batch(batch(**{name: wrong}), CONFIG, "a.tfrecord")


def test_a_length_over_the_positions_is_refused():
    check_length(CONFIG, 16)
    with pytest.raises(UserError, match="--max_seq_length=17 is more than the 16 positions"):
        check_length(CONFIG, 17)


def test_a_full_disk_is_noticed_before_the_run(tmp_path):
    check_disk(tmp_path, CONFIG, keep=1)
    with pytest.raises(UserError, match=r"1000001 checkpoints.*--keep_checkpoint_max"):
        check_disk(tmp_path, CONFIG, keep=1_000_000 + 1)


def test_guessing_among_four_equal_pieces_costs_log_four():
    draws = np.random.default_rng(0)
    batches = [
        {"masked_lm_ids": draws.integers(0, 4, [8, 10]), "masked_lm_weights": np.ones([8, 10])}
        for _ in range(40)
    ]
    assert frequency_loss(batches, vocab_size=4) == pytest.approx(math.log(4), rel=0.01)


def test_a_batch_that_the_machine_cannot_hold_is_refused_with_what_to_change():
    phase = PhaseConfig(
        input_file=("a",),
        num_steps=10,
        batch_size=256,
        learning_rate=1e-4,
        max_seq_length=512,
        max_predictions_per_seq=76,
    )
    training = TrainingConfig(
        learning_rate=1e-4, num_train_steps=10, num_warmup_steps=0, batch_size=256
    )
    config = BertConfig(vocab_size=30522)
    check_memory(config, training, [phase], replicas=1, machine_bytes=1e12)
    with pytest.raises(UserError, match="--train_batch_size=256 at length 512 needs about"):
        check_memory(config, training, [phase], replicas=1, machine_bytes=16e9)
