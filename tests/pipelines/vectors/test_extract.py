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
    return write_encoder(tmp_path_factory.mktemp("models") / "encoder")


def extractor(folder, **changes):
    values = {"layers": (-1, -2), "max_seq_length": 12, "batch_size": 2, **changes}
    return FeatureExtractor(
        FeaturesConfig(input_file="", output_file="", model=str(folder), **values)
    )


def test_no_more_is_computed_ahead_than_the_limit_allows(folder, monkeypatch):
    monkeypatch.setattr(module, "_BYTES_AT_ONCE", 1)  # less than one line
    found, batches, read = extractor(folder), [], []
    compute = found._compute
    monkeypatch.setattr(found, "_compute", lambda rows: batches.append(len(rows)) or compute(rows))
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


def test_a_line_keeps_no_batch_alive(folder):
    for line in extractor(folder).extract(LINES):
        assert line.vectors.base is None
        assert line.vectors.shape == (2, len(line.tokens), 16)


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


def test_without_a_length_the_model_s_positions_count(folder):
    (line,) = extractor(folder, max_seq_length=None).extract(["the dog " * 20])
    assert len(line.tokens) == 12


def test_sizes_that_the_weights_do_not_bear_out_are_refused_before_a_model_is_made(tmp_path):
    folder = write_encoder(tmp_path / "model")
    path = folder / "config.json"
    path.write_text(path.read_text().replace('"vocab_size": 17', f'"vocab_size": {10**9}'))
    with pytest.raises(UserError, match=r"the configuration says \[1000000000, 16\]"):
        extractor(folder)


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
    with pytest.raises(
        UserError,
        match=r"lines\.txt: line 3 is not UTF-8; give its `encoding`",
    ):
        extract_features(config)
    assert not output.parent.exists()
