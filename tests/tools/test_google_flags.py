import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.training.config import TrainingConfig
from tools.command_line import FlagSet
from tools.config_flags import ConfigFlags
from tools.google_flags import add_ignored_flags, add_tpu_flags


@pytest.mark.parametrize(
    ("words", "strategy"),
    [
        ([], "one_device"),
        (["--use_tpu"], "tpu"),
        (["--use_tpu", "--tpu_name=a"], "tpu"),
        (["--nouse_tpu", "--master=local", "--num_tpu_cores=64"], "one_device"),
        (["--use_tpu=false", "--distribution_strategy=mirrored"], "mirrored"),
    ],
)
def test_the_originals_way_to_ask_for_a_tpu(words, strategy):
    flags = ConfigFlags("Trains.", TrainingConfig)
    add_tpu_flags(flags)
    flags.parse(words)
    assert flags.config().distribution_strategy == strategy


def test_two_ways_to_say_which_devices_must_agree():
    flags = ConfigFlags("Trains.", TrainingConfig)
    add_tpu_flags(flags)
    flags.parse(["--use_tpu", "--distribution_strategy=tpu"])
    with pytest.raises(UserError, match="--use_tpu means --distribution_strategy=tpu, but"):
        flags.parse(["--use_tpu", "--distribution_strategy=mirrored"])


def test_a_flagfile_of_a_run_on_a_tpu_asks_for_one_again(tmp_path):
    first, again = (ConfigFlags("Trains.", TrainingConfig) for _ in range(2))
    add_tpu_flags(first)
    add_tpu_flags(again)
    first.parse(["--use_tpu"])
    (tmp_path / "flags.cfg").write_text(first.as_flagfile())
    again.parse([f"--flagfile={tmp_path}/flags.cfg"])
    assert again.config().distribution_strategy == "tpu"


def test_what_means_nothing_here_is_accepted():
    flags = FlagSet("Reads.")
    add_ignored_flags(flags)
    flags.parse(["--use_tpu", "--nouse_one_hot_embeddings", "--master=x", "--num_tpu_cores=8"])
