"""The vectors of a text file's tokens as a file, and what is found out before a model is opened."""

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from pipelines.vectors.extract import LineFeatures, pool
from pipelines.vectors.feature_files import extract_features, write_npz
from pipelines.vectors.options import FeaturesConfig
from tests.support.model_folders import write_encoder

LENGTHS = np.array([2, 5, 3], np.int32)


def lines():
    draws = np.random.default_rng(1)
    for length in LENGTHS:
        vectors = draws.normal(size=[2, length, 4]).astype(np.float32)
        yield LineFeatures(["a"] * length, draws.integers(0, 99, length), vectors)


@pytest.mark.parametrize("pooling", ["none", "mean", "cls"])
@pytest.mark.parametrize("combination", ["concat", "sum"])
def test_it_is_what_numpy_would_have_written(tmp_path, pooling, combination):
    write_npz(tmp_path / "ours.npz", lines(), LENGTHS, 4, pooling, combination)
    vectors = [pool(line, pooling, combination) for line in lines()]
    np.savez(
        tmp_path / "numpys.npz",
        vectors=np.concatenate(vectors) if pooling == "none" else np.stack(vectors),
        ids=np.concatenate([line.ids for line in lines()]).astype(np.int32),
        offsets=np.array([0, 2, 7, 10]),
    )
    with np.load(tmp_path / "ours.npz") as ours, np.load(tmp_path / "numpys.npz") as numpys:
        assert list(ours) == list(numpys)
        for name in ours:
            assert ours[name].dtype == numpys[name].dtype
            np.testing.assert_array_equal(ours[name], numpys[name])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["numpys.npz", "ours.npz"]


def test_the_same_vectors_are_the_same_file(tmp_path):
    for name in ("a.npz", "b.npz"):
        write_npz(tmp_path / name, lines(), LENGTHS, 4, "none", "concat")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize("lengths", [[2, 5], [2, 5, 4], [2, 5, 3, 1]])
def test_a_text_that_changed_in_between_leaves_no_file(tmp_path, lengths):
    with pytest.raises(UserError, match="the text was changed while it was read"):
        write_npz(tmp_path / "a.npz", lines(), np.array(lengths), 4, "none", "concat")
    assert list(tmp_path.iterdir()) == []


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
