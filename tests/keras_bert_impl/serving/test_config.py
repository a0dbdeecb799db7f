from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.config import ExportConfig


def test_the_defaults_export_everything():
    export = ExportConfig(model=Path("a"), output_dir=Path("b"))
    assert (export.top_k, export.max_seq_length, export.verify) == (10, None, True)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"top_k": 0}, "`top_k=0` must be"),
        ({"max_seq_length": 4}, "`max_seq_length=4` must be 5 or more"),
    ],
)
def test_values_out_of_range_are_refused(value, said):
    with pytest.raises(UserError, match=said):
        ExportConfig(model=Path("a"), output_dir=Path("b"), **value)
