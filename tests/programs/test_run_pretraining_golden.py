"""Our training beside 40 recorded steps of the original's own code."""

import json
import shutil

import numpy as np
import pytest

from keras_bert_impl.checkpoints.restore import restore
from keras_bert_impl.models.pretrainer import BertPretrainer
from tests.support.pretraining_run import GOLDEN, RECORDED, metrics, run, run_here

pytestmark = pytest.mark.slow

WHOLE_WORDS = GOLDEN.with_name("pretrain_whole_words")
SAVED = {**RECORDED, "save_checkpoints_steps": 20}  # in the middle, where replicas go on
NAMES = {
    "loss": "loss",
    "masked_lm_loss": "masked_lm_loss",
    "next_sentence_loss": "next_sentence_loss",
    "learning_rate": "learning_rate",
    "gradient_norm": "global_norm",
}


@pytest.fixture(scope="module")
def recorded():
    return json.loads((GOLDEN / "losses.json").read_text())["steps"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    run_here(folder, **SAVED)
    return folder


def assert_follows(lines, recorded):
    for ours, theirs in zip(lines, recorded, strict=True):
        assert ours["step"] == theirs["step"] + 1  # we count the steps done
        for name, their_name in NAMES.items():
            assert ours[name] == pytest.approx(theirs[their_name], rel=1e-5, abs=1e-9), name


def test_losses_rates_and_norms_follow_the_original(whole, recorded):
    assert_follows(metrics(whole), recorded)


def test_another_configuration_and_whole_words_follow_the_original_too(tmp_path):
    """Relu, three layers, three segment types, no warm-up, whole-word records of full length."""
    flags = {
        **RECORDED,
        "input_file": WHOLE_WORDS / "train.tfrecord",
        "bert_config_file": WHOLE_WORDS / "bert_config.json",
        "init_checkpoint": WHOLE_WORDS / "init" / "bert_model.ckpt",
        "max_seq_length": 48,
        "max_predictions_per_seq": 12,
        "train_batch_size": 6,
        "learning_rate": 2e-3,
        "num_train_steps": 30,
        "num_warmup_steps": 0,
    }
    run_here(tmp_path, **flags)
    recorded = json.loads((WHOLE_WORDS / "losses.json").read_text())["steps"]
    assert_follows(metrics(tmp_path), recorded)


def test_weights_end_where_the_originals_end(whole):
    ours = BertPretrainer.from_pretrained(whole / "model")
    theirs = BertPretrainer(ours.config)
    restore(theirs, GOLDEN / "final.ckpt")
    for one, other in zip(ours.weights, theirs.weights, strict=True):
        np.testing.assert_allclose(np.array(one), np.array(other), atol=1e-6, err_msg=one.path)


@pytest.mark.long
def test_a_run_may_go_on_over_two_replicas(whole, tmp_path, recorded):
    folder = shutil.copytree(whole, tmp_path / "run")
    for later in (folder / "checkpoints" / "step-00000040", folder / "model"):
        shutil.rmtree(later)
    said = run(folder, distribution_strategy="mirrored", num_logical_devices=2, **SAVED)
    assert "resuming from step 20 of 40" in said
    assert_follows(metrics(folder), recorded)
