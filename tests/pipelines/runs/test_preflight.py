from pathlib import Path
from types import SimpleNamespace

import pytest
import tensorflow as tf
from tensorflow.python.client import device_lib

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.planning import checkpoint_bytes, count_parameters
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.strategy import Devices
from pipelines.runs.phases import PhaseConfig
from pipelines.runs.preflight import (
    check_disk,
    check_memory,
    check_words,
    device_memory,
    facts_of,
    machine_memory,
)
from tests.support.pretraining_corpus import make_shards

CONFIG = BertConfig(vocab_size=50, max_position_embeddings=16)


def test_a_length_over_the_positions_is_refused():
    CONFIG.check_length(16)
    with pytest.raises(UserError, match="`max_seq_length=17` is more than the 16 positions"):
        CONFIG.check_length(17)


def training(**changes):
    settings = {
        "learning_rate": 1e-4,
        "num_train_steps": 10**7,
        "num_warmup_steps": 0,
        "train_batch_size": 256,
        "save_checkpoints_steps": 1,
    }
    return TrainingConfig(**{**settings, **changes})


@pytest.fixture
def free_space(monkeypatch):
    def leave(count):
        """Room for so many checkpoints and one model."""
        free = count * checkpoint_bytes(CONFIG) + 4 * count_parameters(CONFIG)
        usage = SimpleNamespace(free=free)
        monkeypatch.setattr("pipelines.runs.preflight.shutil.disk_usage", lambda _: usage)

    return leave


def test_a_full_disk_is_noticed_before_the_run(tmp_path, free_space):
    free_space(3)
    check_disk(tmp_path, CONFIG, training(keep_checkpoint_max=2))
    with pytest.raises(UserError, match=r"4 checkpoints of .* are free; lower `keep_checkp"):
        check_disk(tmp_path, CONFIG, training(keep_checkpoint_max=3))
    with pytest.raises(UserError, match="4 checkpoints"):  # the best one is kept as well
        check_disk(tmp_path, CONFIG, training(keep_checkpoint_max=2, eval_steps=100))


def test_checkpoints_that_are_there_already_or_will_never_be_need_no_room(tmp_path, free_space):
    free_space(2)
    check_disk(tmp_path, CONFIG, training(save_checkpoints_steps=10**7, save_checkpoints_secs=0))
    for step in (1, 2, 3, 4):
        (tmp_path / "checkpoints" / f"step-{step:08d}").mkdir(parents=True)
    check_disk(tmp_path, CONFIG, training(keep_checkpoint_max=5))


PHASE = PhaseConfig(
    input_file=("a",),
    num_train_steps=10,
    train_batch_size=256,
    learning_rate=1e-4,
    max_seq_length=512,
    max_predictions_per_seq=76,
)
BASE = BertConfig(vocab_size=30522)


def devices(**changes):
    return Devices(tf.distribute.OneDeviceStrategy("/cpu:0"), use_xla=False, **changes)


def test_a_batch_that_the_machine_cannot_hold_is_refused_with_what_to_change():
    check_memory(BASE, training(), [PHASE], devices(), memory=1e12)
    with pytest.raises(UserError, match=r"`train_batch_size=256` at length 512 .* this"):
        check_memory(BASE, training(), [PHASE], devices(), memory=16e9)


def test_a_gpus_own_memory_counts_and_an_unknown_one_does_not():
    gpu = devices(on_cpu=False)
    check_memory(BASE, training(), [PHASE], gpu, memory=None)
    check_memory(BASE, training(accumulation_steps=64), [PHASE], gpu, memory=16e9)
    with pytest.raises(UserError, match=r"but a device has 16\.0 GB; .*`accumulation_steps`"):
        check_memory(BASE, training(), [PHASE], gpu, memory=16e9)


@pytest.fixture
def gpu_that_tensorflow_does_not_see(monkeypatch):
    monkeypatch.setattr("pipelines.runs.preflight.find_hidden_gpu", lambda: "/dev/nvidia0")


def test_a_hidden_gpu_is_a_fact_of_a_run_that_the_cpu_computes_by_chance(
    gpu_that_tensorflow_does_not_see,
):
    assert facts_of(training(), devices()).hidden_gpu == "/dev/nvidia0"
    split = facts_of(training(num_logical_devices=2), devices())  # the CPU is meant
    assert split.hidden_gpu is None


def test_the_memory_of_a_gpu_is_what_tensorflow_may_take_of_the_smallest(monkeypatch):
    found = [
        SimpleNamespace(device_type=kind, memory_limit=size)
        for kind, size in [("CPU", 1), ("GPU", 40), ("GPU", 30)]
    ]
    monkeypatch.setattr(device_lib, "list_local_devices", lambda: found)
    assert device_memory(devices(on_cpu=False)) == 30.0


def test_a_containers_limit_counts_as_the_machines_memory(tmp_path):
    whole = machine_memory(str(tmp_path))
    assert whole > 1e8
    (tmp_path / "memory.max").write_text("max\n")
    assert machine_memory(str(tmp_path)) == whole
    (tmp_path / "memory.max").write_text("1000000\n")
    assert machine_memory(str(tmp_path)) == 1e6


def test_shards_whose_vocabulary_does_not_fit_are_named(tmp_path):
    (tmp_path / "corpus.txt").write_text("The fox saw a dog. It barks\n\nthe hen ran.\n" * 20)
    config, said = make_shards(tmp_path), []
    check_words([config.output_file], said.append)
    (sentence,) = said
    assert sentence.startswith(f"{config.output_file}: 25.0 % of the words are [UNK], which the")


def test_shards_that_fit_or_do_not_say_it_pass_without_a_word(tmp_path):
    config, said = make_shards(tmp_path), []
    check_words([config.output_file], said.append)
    (Path(f"{config.output_file}.recipe.json")).unlink()
    check_words([f"{config.output_file}-*"], said.append)
    assert said == []
