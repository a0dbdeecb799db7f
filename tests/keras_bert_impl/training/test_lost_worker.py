import json
import os

import pytest
import tensorflow as tf

from keras_bert_impl.training import strategy
from keras_bert_impl.training.strategy import restart_when_a_worker_is_lost
from tests.support.toy_training import toy_config

LOST = tf.errors.UnavailableError(None, None, "the other one is gone\nat some line")
SEVERAL = toy_config(distribution_strategy="multi_worker_mirrored")


@pytest.fixture
def restarts(monkeypatch):
    """How often the process would have started again."""
    count = []
    monkeypatch.delenv("KERAS_BERT_STARTED_AGAIN", raising=False)
    monkeypatch.setattr(strategy, "_start_again", lambda: count.append(1))
    yield count
    os.environ.pop("KERAS_BERT_STARTED_AGAIN", None)


def lose_one(step, lines, config=SEVERAL, error=LOST):
    with restart_when_a_worker_is_lost(config, lambda: step, lines.append):
        raise error


def test_a_lost_worker_starts_this_one_again_and_says_so(restarts):
    lines = []
    lose_one(7, lines)
    assert len(restarts) == 1
    assert lines[0].startswith("Another worker was lost (the other one is gone); this one starts")
    assert json.loads(os.environ["KERAS_BERT_STARTED_AGAIN"]) == [7, 1]


def test_an_error_that_comes_back_without_a_new_checkpoint_is_raised_at_last(restarts):
    for _ in range(5):
        lose_one(7, [])
    with pytest.raises(tf.errors.UnavailableError):
        lose_one(7, [])
    lose_one(8, [])  # a new checkpoint: it is worth another try
    assert len(restarts) == 6


@pytest.mark.parametrize(
    ("config", "error"), [(toy_config(), LOST), (SEVERAL, ValueError("a bug"))]
)
def test_other_errors_and_other_strategies_are_left_alone(restarts, config, error):
    with pytest.raises(type(error)):
        lose_one(7, [], config, error)
    assert restarts == []
