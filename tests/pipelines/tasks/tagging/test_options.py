"""What a run for named entities may be told; the tool's tests hold the sentences."""

from pathlib import Path

import pytest

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.head_settings import (
    FrozenFeatures,
    frozen_features,
    with_frozen_features,
)
from keras_bert_impl.training.config import TrainingConfig
from pipelines.fine_tuning.options import ManyRunsConfig
from pipelines.tasks.tagging.options import RunNerConfig, TaggingConfig


def test_some_file_must_be_named():
    with pytest.raises(UserError, match="nothing says what to tag"):
        RunNerConfig(output_dir=Path("run"))
    files = TaggingConfig(test_file=Path("new.txt"))
    assert RunNerConfig(output_dir=Path("run"), files=files).max_seq_length == 128


CONFIG = BertConfig(vocab_size=9)
TRAINED = with_frozen_features(CONFIG, FrozenFeatures("last", 128))


def config(**options):
    files = TaggingConfig(data_dir=Path("conll"))
    return RunNerConfig(output_dir=Path("run"), files=files, **options)


def test_features_have_a_learning_rate_of_their_own():
    training = TrainingConfig(learning_rate=2e-5)
    assert config(training=training).learning.learning_rate == 2e-5
    assert config(training=training, features="last").learning.learning_rate == 1e-3


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"encoder_bilstm": True}, "encoder_bilstm"),
        ({"many": ManyRunsConfig(search="paper")}, "search"),
    ],
)
def test_what_changes_an_encoder_or_searches_its_rates_excludes_features(options, name):
    with pytest.raises(UserError, match=f"leaves the encoder as it is; leave out `{name}`"):
        config(features="last", **options)


@pytest.mark.parametrize("before", [CONFIG, TRAINED])
def test_training_decides_what_learns_whatever_the_model_was_before(before):
    given = config(do_train=True, features="weighted_all", lstm_size=32).configure(before)
    assert frozen_features(given) == FrozenFeatures("weighted_all", 32)
    assert frozen_features(config(do_train=True).configure(before)) is None


def test_a_trained_model_keeps_its_features():
    assert frozen_features(config(do_eval=True).configure(TRAINED)) == FrozenFeatures("last", 128)
    assert config(do_eval=True, features="last").configure(TRAINED) == TRAINED


@pytest.mark.parametrize(("trained", "found"), [(CONFIG, "fine-tuned"), (TRAINED, "last")])
def test_a_model_with_other_features_is_refused(trained, found):
    with pytest.raises(UserError, match=f"was trained otherwise .*{found}"):
        config(do_eval=True, features="embeddings").configure(trained)
