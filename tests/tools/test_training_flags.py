import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.training.config import TrainingConfig
from tools.config_flags import ConfigFlags
from tools.google_flags import add_tpu_flags


def config(*words):
    flags = ConfigFlags("Trains.", TrainingConfig)
    add_tpu_flags(flags)
    try:
        flags.parse(words)
        return flags.config()
    except UserError as error:
        raise UserError(flags.in_flags(str(error))) from error


def test_the_defaults_are_the_originals():
    plain = config()
    assert (plain.train_batch_size, plain.learning_rate) == (32, 5e-5)
    assert (plain.optimizer, plain.weight_decay, plain.clip_norm) == ("adamw", 0.01, 1.0)
    assert (plain.schedule, plain.bias_correction) == ("linear", False)
    assert (plain.distribution_strategy, plain.accumulation_steps) == ("one_device", 1)


@pytest.mark.parametrize(
    "word", ["--clip_norm=0", "--clip_norm=-1", "--clip_norm=nan", "--weight_decay=-0.1",
             "--layer_decay=0"]
)  # fmt: skip
def test_numbers_that_would_quietly_spoil_a_run_are_refused(word):
    with pytest.raises(UserError, match=word.split("=")[0]):
        config(word)


def test_every_flag_reaches_the_configuration():
    given = config(
        "--train_batch_size=8",
        "--optimizer=lamb",
        "--layer_decay=0.9",
        "--distribution_strategy=mirrored",
        "--num_logical_devices=2",
        "--use_xla",
        "--precision=bfloat16",
        "--recompute",
        "--stop_after_step=5",
    )
    assert (given.train_batch_size, given.optimizer, given.layer_decay) == (8, "lamb", 0.9)
    assert (given.distribution_strategy, given.num_logical_devices) == ("mirrored", 2)
    assert (given.use_xla, given.precision, given.recompute) == (True, "bfloat16", True)
    assert given.stop_after_step == 5


def test_the_originals_way_to_ask_for_a_tpu():
    assert config("--use_tpu", "--tpu_name=a").distribution_strategy == "tpu"


def test_profile_steps_are_two_rising_numbers():
    assert config("--profile_steps=3,7").profile_steps == (3, 7)
    for wrong in ("7,3", "3", "0,4"):
        with pytest.raises(UserError, match="--profile_steps needs two rising step numbers"):
            config(f"--profile_steps={wrong}")
    with pytest.raises(UserError, match="--profile_steps=a,b: give whole numbers"):
        config("--profile_steps=a,b")


def test_a_learning_rate_of_zero_is_refused():
    with pytest.raises(UserError, match=r"--learning_rate=0\.0 must be more than 0"):
        config("--learning_rate=0")


def test_seeds_change_the_mathematics_and_log_intervals_do_not():
    assert config("--log_steps=1").mathematics() == config("--log_steps=7").mathematics()
    assert config("--seed=1").mathematics() != config("--seed=2").mathematics()
