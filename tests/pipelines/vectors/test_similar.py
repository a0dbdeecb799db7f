"""The nearest texts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.embedder import Embedder
from pipelines.vectors import similar
from pipelines.vectors.embed import embed_file
from pipelines.vectors.options import EmbedConfig, SimilarConfig
from pipelines.vectors.similar import find_similar, nearest
from tests.pipelines.vectors.conftest import TEXTS
from tests.support.model_folders import write_encoder, write_prompted


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


@pytest.mark.parametrize("kind", ["float32", "int8", "ubinary"])
@pytest.mark.parametrize("size", [None, 12])
def test_smaller_vectors_are_searched_as_well(model, lines, tmp_path, kind, size):
    given = {"model": model, "input_file": lines}
    output = tmp_path / "x.npy"
    made = EmbedConfig(**given, output_file=output, vector_type=kind, dimensions=size)
    embed_file(made)
    for text in {*TEXTS} - {""}:
        found = find_similar(SimilarConfig(**given, vectors_file=output, query=(text,)))
        assert text in {one.text for one in found if one.cosine >= found[0].cosine - 1e-5}
        assert found[0].cosine == pytest.approx(1.0, abs=0.5 if kind == "ubinary" else 1e-3)
    if kind == "int8":
        (tmp_path / "x.npy.json").unlink()
        with pytest.raises(UserError, match=r"x\.npy\.json: says no ranges"):
            find_similar(SimilarConfig(**given, vectors_file=output, query=("a",), dimensions=size))


def test_queries_have_the_prompt_that_belongs_to_that_of_the_vectors(lines, tmp_path):
    model = str(write_prompted(tmp_path / "prompted"))
    embedder, output = Embedder.from_pretrained(model), tmp_path / "x.npy"
    given = {"model": model, "input_file": lines}
    asked = {**given, "vectors_file": output, "query": ("a dog",), "top_k": 1}
    for made, chosen, name in (
        ({}, {}, None),
        ({"prompt_name": "document"}, {}, "query"),
        ({"prompt_name": "document"}, {"prompt_name": "passage"}, "passage"),
        ({"prompt": "a value "}, {"prompt_name": "query"}, "query"),
    ):
        embed_file(EmbedConfig(**given, output_file=output, **made))
        (found,) = find_similar(SimilarConfig(**asked, **chosen))
        _, cosines = nearest(np.load(output), embedder.embed("a dog", name), 1)
        assert found.cosine == pytest.approx(cosines[0, 0], abs=1e-5)
    with pytest.raises(UserError, match="another pooling or prompt"):
        find_similar(SimilarConfig(**asked))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (np.zeros([6, 5], "float32"), "have 5 numbers"),
        (np.zeros([2, 16], "float32"), "has 2 vectors, but .* has 6 texts"),
        (np.array([{}], object), "cannot be read as a file of vectors"),
        (np.full([6, 16], np.nan, "float32"), "has vectors that are NaN"),
    ],
)
def test_other_vectors_are_refused(search, tmp_path, content, sentence):
    np.save(tmp_path / "other.npy", content, allow_pickle=True)
    with pytest.raises(UserError, match=sentence):
        search(query=("a",), vectors_file=tmp_path / "other.npy")


def test_vectors_of_another_model_of_the_same_size_are_refused(search, tmp_path):
    other = write_encoder(tmp_path / "other", initializer_range=0.5)
    with pytest.raises(UserError, match=r"x\.npy\.json says .* another model"):
        search(query=("a",), model=str(other))
    with pytest.raises(UserError, match="another pooling"):
        search(query=("a",), pooling="cls")


def test_vectors_of_another_file_of_as_many_texts_are_told(search, tmp_path, caplog):
    (tmp_path / "others.txt").write_text("the dog\n" * len(TEXTS))
    search(query=("a",))
    assert not caplog.records
    search(query=("a",), input_file=str(tmp_path / "others.txt"))
    (told,) = caplog.messages
    assert "made of another file" in told


HEADERS = [
    "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999, 4)}",
    "{'descr': {'names': [1]}, 'fortran_order': False, 'shape': (4, 4)}",
    "__import__('os').abort()",
    "(" * 3000,
]


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_of_another_kind_is_one_sentence(tmp_path, header):
    path = tmp_path / "vectors.npy"
    path.write_bytes(b"\x93NUMPY\x01\0" + len(header).to_bytes(2, "little") + header.encode())
    config = SimilarConfig(model="m", query=("a",), input_file=path, vectors_file=path)
    with pytest.raises(
        UserError, match=r"vectors\.npy: cannot be read as a file of vectors .*make it with embed"
    ):
        find_similar(config)
