"""What extract_features finds out before it opens a model."""

import pytest

from keras_bert_impl.errors import UserError
from pipelines.features.config import FeaturesConfig
from pipelines.features.extract import extract_features
from tests.support.model_folders import write_encoder


def test_the_inputs_of_a_table_are_its_column_of_texts(tmp_path):
    model = write_encoder(tmp_path / "model")
    (tmp_path / "x.csv").write_text("id,review\n1,a cat\n2,the dog\n")
    (tmp_path / "x.txt").write_text("a cat\nthe dog\n")
    written = []
    for name in ("x.csv", "x.txt"):
        config = FeaturesConfig(
            input_file=str(tmp_path / name),
            output_file=str(tmp_path / "out"),
            model=str(model),
            layers=(-1,),
            max_seq_length=None,
        )
        assert extract_features(config) == 2
        written.append((tmp_path / "out").read_bytes())
    assert written[0] == written[1]


def test_a_fault_in_the_last_line_is_found_before_the_work_begins(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_bytes(b"one\ntwo\n\xffthree\n")
    output = tmp_path / "new" / "x.npz"
    config = FeaturesConfig(input_file=str(path), output_file=str(output), model="no model")
    with pytest.raises(UserError, match=r"lines\.txt: line 3 is not UTF-8; convert the file"):
        extract_features(config)
    assert not output.parent.exists()
