"""The nearest texts."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from pipelines.vectors import similar
from pipelines.vectors.embed import embed_file
from pipelines.vectors.options import EmbedConfig, SimilarConfig
from pipelines.vectors.similar import find_similar, nearest
from tests.pipelines.vectors.conftest import TEXTS


@given(st.integers(1, 40), st.integers(1, 6), st.integers(0, 99))
def test_the_nearest_are_those_of_all_cosines(count, wanted, seed):
    draws = np.random.default_rng(seed)
    vectors, queries = (draws.normal(size=(n, 4)).astype("float32") for n in (count, 3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similar, "_BLOCK_BYTES", 16 * 7)  # blocks of seven vectors
        numbers, cosines = nearest(vectors, queries, wanted)
    lengths = np.linalg.norm(queries, axis=1)[:, None] * np.linalg.norm(vectors, axis=1)
    every = queries @ vectors.T / lengths
    np.testing.assert_allclose(cosines, -np.sort(-every, axis=1)[:, :wanted], atol=1e-6)
    np.testing.assert_allclose(np.take_along_axis(every, numbers, axis=1), cosines, atol=1e-6)


@pytest.fixture
def search(model, lines, tmp_path):
    output = tmp_path / "x.npy"
    embed_file(EmbedConfig(model=model, input_file=lines, output_file=output))
    given = {"model": model, "input_file": lines, "vectors_file": output}
    return lambda **options: find_similar(SimilarConfig(**{**given, **options}))


def test_a_text_is_nearest_to_itself(search, tmp_path):
    (tmp_path / "queries.txt").write_text("a value .\n")
    found = search(query=("a cat",), query_file=str(tmp_path / "queries.txt"), top_k=2)
    assert [one.query for one in found] == ["a cat", "a cat", "a value .", "a value ."]
    assert (found[0].number, found[0].text) == (2, "a cat")
    assert found[0].cosine == pytest.approx(1.0)
    assert found[2].text == "a value ."
    assert found[0].cosine >= found[1].cosine


def test_texts_and_queries_of_tables_are_their_columns(model, tmp_path):
    """The header of neither is a text."""
    (tmp_path / "x.csv").write_text("id,review\n1,a cat\n2,the dog\n")
    (tmp_path / "q.jsonl").write_text('{"text": "the dog"}\n')
    given = {"model": model, "input_file": str(tmp_path / "x.csv")}
    embed_file(EmbedConfig(**given, output_file=tmp_path / "x.npy"))
    assert np.load(tmp_path / "x.npy").shape[0] == 2
    config = SimilarConfig(
        **given, vectors_file=tmp_path / "x.npy", query_file=str(tmp_path / "q.jsonl"), top_k=1
    )
    (found,) = find_similar(config)
    assert (found.query, found.number, found.text) == ("the dog", 2, "the dog")


def test_more_than_there_are_gives_all(search):
    assert sorted(one.text for one in search(query=("a",), top_k=99)) == sorted(TEXTS)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (np.zeros([6, 5], "float32"), "have 5 numbers"),
        (np.zeros([2, 16], "float32"), "has 2 vectors, but .* has 6 texts"),
        (np.zeros([6, 16]), "holds no float32 vectors"),
        (np.array([{}], object), "is no file of vectors"),
    ],
)
def test_other_vectors_are_refused(search, tmp_path, content, sentence):
    np.save(tmp_path / "other.npy", content, allow_pickle=True)
    with pytest.raises(UserError, match=sentence):
        search(query=("a",), vectors_file=tmp_path / "other.npy")


def test_missing_vectors_are_one_sentence(search):
    with pytest.raises(UserError, match="no such file; make it with embed"):
        search(query=("a",), vectors_file=Path("/no/x.npy"))


def test_a_query_of_unknown_words_is_answered_with_a_warning(search, caplog):
    assert len(search(query=("비가 온다",), top_k=1)) == 1
    assert caplog.messages[-1].startswith("the texts: 100.0 % of the words of a sample become")
