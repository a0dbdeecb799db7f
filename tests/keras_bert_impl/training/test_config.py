import dataclasses
import math

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.training.config import PRECISIONS, TrainingConfig, dtype_policy
from tests.support.toy_training import toy_config


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_train_steps", 0),
        ("train_batch_size", 0),
        ("learning_rate", 0.0),
        ("learning_rate", math.nan),
        ("clip_norm", -1.0),
        ("layer_decay", 1.5),
        ("weight_decay", -0.1),
        ("seed", -1),
        ("seed", 2**32),
        ("precision", "float8"),
        ("optimizer", "sgd"),
        ("schedule", "steps"),
        ("distribution_strategy", "central"),
        ("kernels", "slow"),
    ],
)
def test_values_out_of_range_are_refused_by_name(name, value):
    with pytest.raises(UserError, match=name):
        toy_config(**{name: value})


@pytest.mark.parametrize(
    ("said", "changes"),
    [
        ("`train_hours` is for one machine", {"train_hours": 1.0}),
        ("`batch_ramp` is for one machine", {"batch_ramp": 0.5, "accumulation_steps": 3}),
    ],
)
def test_what_one_clock_decides_is_for_one_machine(said, changes):
    with pytest.raises(UserError, match=said):
        toy_config(distribution_strategy="multi_worker_mirrored", **changes)


@pytest.mark.parametrize("parts", [1, 7])
def test_a_ramp_needs_equal_micro_batches(parts):
    with pytest.raises(UserError, match=r"`batch_ramp=0.5` needs a `train_batch_size`"):
        toy_config(batch_ramp=0.5, accumulation_steps=parts)


@pytest.mark.parametrize("steps", [(3,), (0, 4), (5, 4)])
def test_a_profile_needs_two_rising_steps(steps):
    with pytest.raises(UserError, match="profile_steps"):
        toy_config(profile_steps=steps)


def test_what_changes_the_result_is_compared_when_a_run_is_resumed():
    compared = set(toy_config().mathematics())
    assert {"learning_rate", "num_train_steps", "train_batch_size", "seed", "precision"} <= compared


@pytest.mark.parametrize(
    "changes",
    [
        {"accumulation_steps": 4, "recompute": True, "iterations_per_loop": 10},
        {"distribution_strategy": "mirrored", "num_logical_devices": 2, "use_xla": True},
        {"save_checkpoints_steps": 1, "keep_checkpoint_max": 1, "eval_steps": 1, "log_steps": 1},
        {"stop_after_step": 3, "allow_changed_flags": True, "profile_steps": (1, 2)},
        {"tpu_name": "v5", "tpu_zone": "here", "gcp_project": "ours", "kernels": "plain"},
    ],
)
def test_what_only_changes_how_it_is_computed_is_not(changes):
    assert toy_config(**changes).mathematics() == toy_config().mathematics()


def test_every_precision_has_a_policy_of_keras():
    assert [dtype_policy(p) for p in PRECISIONS] == ["float32", "mixed_bfloat16", "mixed_float16"]
    with pytest.raises(UserError, match="precision"):
        dtype_policy("float8")


def test_a_configuration_cannot_be_changed_behind_a_runs_back():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TrainingConfig(num_train_steps=10, num_warmup_steps=2).learning_rate = 1.0


def test_choosing_among_evaluations_needs_evaluations():
    toy_config(save_best=True).check_evaluates(True)
    toy_config().check_evaluates(False)
    with pytest.raises(UserError, match=r"`save_best=True` needs held-out evaluations"):
        toy_config(save_best=True).check_evaluates(False)
    with pytest.raises(UserError, match=r"`early_stopping_evals=3` needs .* `eval_steps=0` out"):
        toy_config(early_stopping_evals=3, eval_steps=0).check_evaluates(True)
    by_clock = {"early_stopping_evals": 3, "train_hours": 1.0}
    with pytest.raises(UserError, match=r"`early_stopping_evals=3`: .* say by `eval_steps`"):
        toy_config(**by_clock).check_evaluates(True)
    toy_config(**by_clock, eval_steps=10).check_evaluates(True)


def test_an_epoch_lies_between_evaluations_unless_told():
    found = [toy_config(eval_steps=n).evaluated_each(12).eval_steps for n in (None, 0, 5)]
    assert found == [12, 0, 5]
    assert not toy_config(eval_steps=0).chooses_best
    ways = {"save_best": True, "eval_steps": 1}
    assert all(toy_config(**{name: value}).chooses_best for name, value in ways.items())
