import pytest

from keras_bert_impl.errors import UserError
from pipelines.features.config import COMBINATIONS, POOLINGS, FeaturesConfig


def config(**changes) -> FeaturesConfig:
    return FeaturesConfig(input_file="in", output_file="out", init_checkpoint="model", **changes)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("combination", COMBINATIONS)
def test_every_named_choice_is_allowed(pooling, combination):
    assert config(pooling=pooling, combination=combination).pooling == pooling


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": ()}, "names no layer"),
        ({"pooling": "max"}, "max` is unknown; choose none, mean, cls"),
        ({"combination": "mean"}, "mean` is unknown; choose concat, sum"),
        ({"output_format": "csv"}, "csv` is unknown; choose json, npz"),
    ],
)
def test_other_choices_are_refused_in_one_sentence(changes, message):
    with pytest.raises(UserError, match=message):
        config(**changes)
