"""The options of vectors."""

from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from pipelines.vectors.options import EmbedConfig, FeaturesConfig, SimilarConfig

GIVEN = {"model": "m", "input_file": "lines.txt"}


def test_the_outputs_name_says_its_form():
    assert EmbedConfig(**GIVEN, output_file=Path("x.parquet")).pooling is None
    with pytest.raises(UserError, match=r"must end in \.npy or \.parquet"):
        EmbedConfig(**GIVEN, output_file=Path("x.csv"))


def test_something_must_be_searched_for():
    with pytest.raises(UserError, match="`query` or `query_file`"):
        SimilarConfig(**GIVEN, vectors_file=Path("x.npy"))


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
        FeaturesConfig(input_file="in", output_file="out", model="model", **changes)
