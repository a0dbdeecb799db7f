"""The options of vectors."""

from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from pipelines.vectors.options import EmbedConfig, SimilarConfig

GIVEN = {"model": "m", "input_file": "lines.txt"}


def test_the_outputs_name_says_its_form():
    assert EmbedConfig(**GIVEN, output_file=Path("x.parquet")).pooling is None
    with pytest.raises(UserError, match=r"let it end in \.npy or \.parquet"):
        EmbedConfig(**GIVEN, output_file=Path("x.csv"))


def test_something_must_be_searched_for():
    with pytest.raises(UserError, match="`query` or `query_file`"):
        SimilarConfig(**GIVEN, vectors_file=Path("x.npy"))
