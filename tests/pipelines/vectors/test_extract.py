import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from pipelines.vectors import extract as module
from pipelines.vectors.extract import FeatureExtractor, windows
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


def test_a_window_holds_what_fits_and_at_least_a_batch():
    assert list(windows([4, 4, 4, 9, 1], least=1, most_bytes=8)) == [(0, 2), (2, 3), (3, 4), (4, 5)]
    assert list(windows([4, 4, 4, 9, 1], least=3, most_bytes=8)) == [(0, 3), (3, 5)]
    assert list(windows([4, 4], least=32, most_bytes=8)) == [(0, 2)]


def test_no_more_is_computed_ahead_than_the_limit_allows(folder, monkeypatch):
    monkeypatch.setattr(module, "_BYTES_AT_ONCE", 1)  # less than one line
    found, batches = extractor(folder), []
    compute = found._compute
    monkeypatch.setattr(found, "_compute", lambda rows: batches.append(len(rows)) or compute(rows))
    next(found.extract(LINES))
    assert batches == [2]


def test_the_limit_changes_no_vector(folder, monkeypatch):
    found = extractor(folder)
    whole = list(found.extract(LINES))
    monkeypatch.setattr(module, "_BYTES_AT_ONCE", 1)
    monkeypatch.setattr(module, "_LINES_AT_ONCE", 3)
    cut = list(found.extract(LINES))
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


def test_lines_are_read_as_they_are_needed(folder, monkeypatch):
    monkeypatch.setattr(module, "_LINES_AT_ONCE", 2)
    read = []
    found = extractor(folder).extract(read.append(line) or line for line in LINES)
    next(found)
    assert read == LINES[:2]


def test_the_lengths_are_those_of_the_vectors(folder):
    found = extractor(folder)
    lengths = found.lengths(iter(LINES))
    assert lengths.tolist() == [len(line.ids) for line in found.extract(LINES)]
