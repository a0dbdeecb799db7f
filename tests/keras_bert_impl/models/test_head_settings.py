import numpy as np
import pytest

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.head_settings import (
    FEATURES,
    FrozenFeatures,
    LabelUnits,
    frozen_features,
    with_frozen_features,
)

# BERT's paper, table 7, for its 12 blocks.
LAYERS_OF_BASE = {
    "embeddings": (0,),
    "second_to_last": (11,),
    "last": (12,),
    "weighted_last_four": (9, 10, 11, 12),
    "concat_last_four": (9, 10, 11, 12),
    "weighted_all": tuple(range(1, 13)),
}


@pytest.mark.parametrize("features", FEATURES)
def test_the_layers_are_the_papers(features):
    assert FrozenFeatures(features).layers(12) == LAYERS_OF_BASE[features]


@pytest.mark.parametrize(("features", "blocks"), [("second_to_last", 1), ("weighted_last_four", 3)])
def test_a_model_with_too_few_blocks_is_refused(features, blocks):
    with pytest.raises(UserError, match=f"the model has {blocks} blocks only"):
        FrozenFeatures(features).layers(blocks)


def test_a_configuration_keeps_them_through_its_file():
    given = FrozenFeatures("weighted_all", 128)
    config = with_frozen_features(BertConfig(vocab_size=9), given)
    again = BertConfig.from_hugging_face(config.to_hugging_face())
    assert frozen_features(again) == given


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"features": "first", "lstm_size": 4}, "features first are unknown; take embeddings"),
        ({"features": "last"}, "frozen_features: its content is"),
        ("last", "frozen_features: its content is"),
    ],
)
def test_what_does_not_exist_is_named(entry, message):
    with pytest.raises(UserError, match=message):
        frozen_features(BertConfig(vocab_size=9, extra={"frozen_features": entry}))


def test_only_the_head_is_in_other_units_and_keeps_its_type():
    units, weight = LabelUnits(10.0, 4.0), np.float32([[0.5, -1.0]])
    np.testing.assert_array_equal(units.fold("classifier/dense/kernel", weight), 4 * weight)
    np.testing.assert_array_equal(units.fold("classifier/dense/bias", weight), 4 * weight + 10)
    assert units.fold("classifier/dense/bias", weight).dtype == np.float32
    assert units.fold("pooler/dense/bias", weight) is weight
    for path in ("classifier/dense/kernel", "classifier/dense/bias", "pooler/dense/bias"):
        np.testing.assert_array_equal(units.unfold(path, units.fold(path, weight)), weight)
