import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from pipelines.vectors import extract as module
from pipelines.vectors.extract import FeatureExtractor, extract_features
from pipelines.vectors.options import FeaturesConfig
from tests.support.model_folders import write_encoder

LINES = ["the dog runs.", "a", "", "the cat sleeps . the dog runs .", "a list", "a dog", "the cat"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("models") / "encoder", num_hidden_layers=2)


def extractor(folder, **changes):
    values = {"layers": (-1, -2), "max_seq_length": 12, "batch_size": 2, **changes}
    return FeatureExtractor(
        FeaturesConfig(input_file="", output_file="", model=str(folder), **values)
    )


def test_no_more_is_computed_ahead_than_the_limit_allows(folder, monkeypatch):
    monkeypatch.setattr(module, "_BYTES_AT_ONCE", 1)  # less than one line
    found, batches, read = extractor(folder), [], []
    compute = found._forward
    monkeypatch.setattr(
        found, "_forward", lambda rows: batches.append(len(rows["input_ids"])) or compute(rows)
    )
    next(found.extract(read.append(line) or line for line in LINES))
    assert batches == [2]
    assert read == LINES[:2]


def test_the_limit_changes_no_vector(folder, monkeypatch):
    whole = list(extractor(folder).extract(LINES))
    monkeypatch.setattr(module, "_BYTES_AT_ONCE", 1)
    cut = list(extractor(folder).extract(LINES))
    assert [line.tokens for line in cut] == [line.tokens for line in whole]
    for one, other in zip(cut, whole, strict=True):
        np.testing.assert_allclose(one.vectors, other.vectors, atol=1e-5)


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        ("the dog ||| a cat", "[CLS] the dog [SEP] a cat [SEP]"),
        ("the ||| dog ||| a cat", "[CLS] the [UNK] [UNK] [UNK] dog [SEP] a cat [SEP]"),
        ("the dog ||| \u200b", "[CLS] the dog [SEP]"),
    ],
)
def test_the_last_bar_parts_two_segments_and_an_empty_second_counts_as_none(folder, line, tokens):
    (found,) = extractor(folder).extract([line])
    assert " ".join(found.tokens) == tokens


def test_a_fault_in_the_last_line_is_found_before_the_work_begins(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_bytes(b"one\ntwo\n\xffthree\n")
    output = tmp_path / "new" / "x.npz"
    config = FeaturesConfig(input_file=str(path), output_file=str(output), model="no model")
    with pytest.raises(UserError, match=r"lines\.txt: line 3 is not UTF-8; give its `encoding`"):
        extract_features(config)
    assert not output.parent.exists()
