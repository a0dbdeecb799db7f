import json
import shutil

import pytest

from keras_bert_impl.checkpoints import model_source
from keras_bert_impl.errors import UserError
from keras_bert_impl.options import changed_settings
from keras_bert_impl.training.checkpoints import write_checkpoint
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.run_directory import RunDirectory
from pipelines.runs.pretraining_config import RunPretrainingConfig, SecondPhaseConfig
from pipelines.runs.pretraining_start import (
    check_finished_run,
    pretraining_settings,
    shards_identity,
)
from tests.support.pretraining_run import GOLDEN, shorter_shard
from tests.support.tiny_bert import golden_config

SHARD = GOLDEN / "train.tfrecord"


def config(training=(), phase2=(), **changes):
    options = {
        "input_file": (str(SHARD),),
        "output_dir": "run",
        "bert_config_file": str(GOLDEN / "bert_config.json"),
        "training": TrainingConfig(
            **{"num_train_steps": 4, "num_warmup_steps": 1, **dict(training)}
        ),
        "phase2": SecondPhaseConfig(**dict(phase2)),
    }
    return RunPretrainingConfig(**{**options, **changes})


def settings(run_config):
    run = pretraining_settings(run_config, golden_config(), "sha")
    return {**run_config.training.mathematics(), **run}


def changed(**changes):
    """The settings that differ from those of the plain run."""
    differing = changed_settings(settings(config()), settings(config(**changes)))
    return [name for name, _, _ in differing]


def test_shards_count_by_their_content_and_not_by_their_place(tmp_path):
    moved = tmp_path / "moved.tfrecord"
    shutil.copy(SHARD, moved)
    assert shards_identity([str(moved)]) == shards_identity([str(SHARD)])
    content = bytearray(moved.read_bytes())
    content[100] ^= 1
    moved.write_bytes(content)
    assert shards_identity([str(moved)]) != shards_identity([str(SHARD)])


def test_what_changes_the_weights_is_named(tmp_path):
    other = shorter_shard(tmp_path / "other.tfrecord", length=32, predictions=5)
    assert changed(input_file=(str(other),)) == ["input_file"]
    assert changed(shuffle=False, next_sentence=False) == ["next_sentence", "shuffle"]
    assert changed(training={"seed": 7, "num_warmup_steps": 1}) == ["seed"]
    phase2 = changed(phase2={"input_file": (str(other),), "num_train_steps": 1})
    assert {"phase2_input_file", "phase2_num_train_steps", "phase2_max_seq_length"} <= set(phase2)


def test_a_model_and_its_vocabulary_count_by_their_content():
    now = settings(config())
    assert now["bert_config_file"] == golden_config().to_google()
    assert now["vocab_file"] == "sha"


def test_what_changes_no_weight_is_not(tmp_path):
    assert changed(output_dir="elsewhere", do_eval=True, eval_batch_size=4) == []
    assert changed(eval_input_file=(str(SHARD),)) == []
    assert changed(training={"log_steps": 1, "accumulation_steps": 2}) == []


def test_a_model_of_the_hub_is_its_name_and_commit_wherever_the_cache_lies(tmp_path, monkeypatch):
    identities = set()
    for place in ("a", "b"):
        snapshot = tmp_path / place / "models--klue--bert-base" / "snapshots" / "5f3b"
        snapshot.mkdir(parents=True)
        monkeypatch.setattr(model_source, "find_on_hub", lambda *_, found=snapshot: found)
        monkeypatch.chdir(tmp_path / place)
        run = config(init_checkpoint="klue/bert-base")
        identities.add(settings(run)["init_checkpoint"])
    assert identities == {"klue/bert-base@5f3b"}


@pytest.fixture
def finished(tmp_path):
    """A run directory whose newest checkpoint is one of the plain run."""
    run = RunDirectory.open(tmp_path)
    write_checkpoint(
        run.checkpoints / "step-00000004", {}, {"step": 4, "settings": settings(config())}
    )
    return run


def test_a_finished_run_is_the_one_of_the_same_options(finished):
    named = config(vocab_file=None)
    check_finished_run(named, finished)
    with pytest.raises(UserError, match="seed"):
        check_finished_run(config({"seed": 7}), finished)
    check_finished_run(config({"seed": 7, "allow_changed_flags": True}), finished)


def test_an_option_younger_than_the_finished_run_had_its_default(finished):
    path = finished.checkpoints / "step-00000004" / "checkpoint.json"
    description = json.loads(path.read_text())
    del description["settings"]["next_sentence"], description["settings"]["layer_decay"]
    path.write_text(json.dumps(description))
    check_finished_run(config(), finished)
    with pytest.raises(UserError, match="`next_sentence` was True and is False"):
        check_finished_run(config(next_sentence=False), finished)
