from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.config import ExportConfig, FillMaskConfig


def test_the_defaults_export_everything_and_show_five_tokens():
    export = ExportConfig(model=Path("a"), output_dir=Path("b"))
    assert (export.top_k, export.max_seq_length, export.verify) == (10, None, True)
    fill = FillMaskConfig(model="a")
    assert (fill.top_k, fill.format, fill.text, fill.input_file) == (5, "table", (), None)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ExportConfig(model=Path("a"), output_dir=Path("b"), top_k=0), "`top_k=0` must be"),
        (
            lambda: ExportConfig(model=Path("a"), output_dir=Path("b"), max_seq_length=4),
            "`max_seq_length=4` must be 5 or more",
        ),
        (lambda: FillMaskConfig(model="a", format="xml"), "`format=xml` is unknown; choose table"),
    ],
)
def test_values_out_of_range_are_refused(make, said):
    with pytest.raises(UserError, match=said):
        make()
