"""What extract_features finds out before it opens a model."""

import pytest

from keras_bert_impl.errors import UserError
from pipelines.features.config import FeaturesConfig
from pipelines.features.extract import extract_features


def test_a_fault_in_the_last_line_is_found_before_the_work_begins(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_bytes(b"one\ntwo\n\xffthree\n")
    output = tmp_path / "new" / "x.npz"
    config = FeaturesConfig(input_file=str(path), output_file=str(output), model="no model")
    with pytest.raises(UserError, match=r"lines\.txt: line 3 is not UTF-8; convert the file"):
        extract_features(config)
    assert not output.parent.exists()
