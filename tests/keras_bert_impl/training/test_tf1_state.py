"""A run handed to the original and taken back; the original's own files stand in
tests/programs/test_run_pretraining_golden.py."""

import numpy as np
import pytest

from keras_bert_impl.checkpoints.formats.google_tf1 import GoogleSource
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.training.checkpoints import read_tf1_state, write_tf1_state
from keras_bert_impl.training.state import TrainingState
from tests.support.tiny_bert import GOLDEN, TINY
from tests.support.toy_training import toy_config


def state_of(config=TINY):
    return TrainingState(BertPretrainer(config), toy_config())


def fill(state):
    """Other numbers in every variable."""
    draws = np.random.default_rng(0)
    for group in ("weights", "adam_m", "adam_v"):
        for variable in state.variables()[group]:
            variable.assign(draws.normal(size=variable.shape))


def values(state):
    names = ("weights", "adam_m", "adam_v")
    return [np.array(v) for name in names for v in state.variables()[name]]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The state of a run, and the checkpoint that was written of it."""
    state, prefix = state_of(), tmp_path_factory.mktemp("tf1") / "model.ckpt"
    fill(state)
    write_tf1_state(prefix, state, 12)
    return state, prefix


def test_what_is_written_is_read_back_to_the_bit_with_its_step(written):
    state, prefix = written
    other = state_of()
    assert read_tf1_state(prefix, other) == 12
    for one, two in zip(values(state), values(other), strict=True):
        np.testing.assert_array_equal(one, two)


def test_matrices_and_their_moments_lie_as_in_the_original(written):
    state, prefix = written
    source = GoogleSource(prefix)
    name = "bert/encoder/layer_0/attention/self/query/kernel"
    shapes = {source.read(name + suffix).shape for suffix in ("", "/adam_m", "/adam_v")}
    assert shapes == {(TINY.hidden_size, TINY.hidden_size)}
    assert source.read("global_step").dtype == np.int64
    assert len(source.names()) == 3 * len(state.model.trainable_variables) + 1


def test_weights_alone_are_no_training_checkpoint():
    with pytest.raises(UserError, match="holds no global_step, so it is no training checkpoint"):
        read_tf1_state(GOLDEN / "pretrain" / "init" / "bert_model.ckpt", state_of())


def test_a_checkpoint_of_fewer_layers_or_another_width_is_refused(written):
    _, prefix = written
    with pytest.raises(UserError, match="lacks bert/encoder/layer_2/"):
        read_tf1_state(prefix, state_of(TINY.replace(num_hidden_layers=3)))
    with pytest.raises(UserError, match=r"has shape .* which does not fit the model"):
        read_tf1_state(prefix, state_of(TINY.replace(intermediate_size=20)))
