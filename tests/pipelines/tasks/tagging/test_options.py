"""What a run for named entities may be told; the tool's tests hold the sentences."""

from pathlib import Path

from keras_bert_impl.config import BertConfig
from keras_bert_impl.models.head_settings import (
    FrozenFeatures,
    frozen_features,
    with_frozen_features,
)
from pipelines.tasks.tagging.options import RunNerConfig, TaggingConfig

CONFIG = BertConfig(vocab_size=9)
TRAINED = with_frozen_features(CONFIG, FrozenFeatures("last", 128))


def config(**options):
    files = TaggingConfig(data_dir=Path("conll"))
    return RunNerConfig(output_dir=Path("run"), files=files, **options)


def test_what_is_trained_is_no_tagger_over_frozen_layers_and_what_is_scored_may_be_one():
    assert frozen_features(config(do_train=True).configure(TRAINED)) is None
    assert frozen_features(config(do_eval=True).configure(TRAINED)) == FrozenFeatures("last", 128)
