import pytest

from keras_bert_impl.errors import UserError
from pipelines.vectors.options import FeaturesConfig


def config(**changes) -> FeaturesConfig:
    return FeaturesConfig(input_file="in", output_file="out", model="model", **changes)


@pytest.mark.parametrize("pooling", ["none", "mean", "cls"])
@pytest.mark.parametrize("combination", ["concat", "sum"])
def test_every_named_choice_is_allowed(pooling, combination):
    assert config(pooling=pooling, layer_combination=combination).pooling == pooling


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": ()}, "names no layer"),
        ({"pooling": "max"}, "max` is unknown; choose none, mean or cls"),
        ({"layer_combination": "mean"}, "mean` is unknown; choose concat or sum"),
        ({"output_format": "csv"}, "csv` is unknown; choose json or npz"),
    ],
)
def test_other_choices_are_refused_in_one_sentence(changes, message):
    with pytest.raises(UserError, match=message):
        config(**changes)
