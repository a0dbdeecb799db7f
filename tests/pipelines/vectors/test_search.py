"""The nearest texts, of a file with its vectors and of an index."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.embedder import Embedder
from keras_bert_impl.serving.smaller_vectors import unit
from pipelines.vectors import search as module
from pipelines.vectors.embed import embed_file
from pipelines.vectors.nearest import nearest
from pipelines.vectors.options import EmbedConfig, SearchConfig, SimilarConfig
from pipelines.vectors.search import find_similar, search
from tests.pipelines.vectors.conftest import TEXTS
from tests.support.model_folders import write_encoder, write_prompted


@pytest.fixture
def similar(model, lines, tmp_path):
    output = tmp_path / "x.npy"
    embed_file(EmbedConfig(model=model, input_file=lines, output_file=output))
    given = {"model": model, "input_file": lines, "vectors_file": output}
    return lambda **options: list(find_similar(SimilarConfig(**{**given, **options})))


def test_a_text_is_nearest_to_itself(similar, tmp_path):
    (tmp_path / "queries.txt").write_text("a value .\n")
    found = similar(query=("a cat",), query_file=str(tmp_path / "queries.txt"), top_k=2)
    assert [found[n] for n in (0, 1, 3, 4)] == [
        *("a cat", "  1.000  2  a cat"),
        *("a value .", "  1.000  6  a value ."),
    ]
    assert len(found) == 6


def scores_of(lines):
    """(score, text) of what was found."""
    parts = [line.split("  ") for line in lines if line.startswith("  ")]
    return [(float(score), text) for _, score, _, text in parts]


@pytest.mark.parametrize("kind", ["float32", "int8", "ubinary"])
@pytest.mark.parametrize("size", [None, 12])
def test_smaller_vectors_are_searched_as_well(model, lines, tmp_path, kind, size):
    given = {"model": model, "input_file": lines}
    output = tmp_path / "x.npy"
    embed_file(EmbedConfig(**given, output_file=output, vector_type=kind, dimensions=size))
    queries = tuple(filter(None, TEXTS))
    asked = SimilarConfig(**given, vectors_file=output, query=queries)
    found = scores_of(find_similar(asked))
    for number, text in enumerate(queries):
        own = found[number * asked.top_k :][: asked.top_k]
        assert text in {one for score, one in own if score >= own[0][0] - 1e-3}
        assert own[0][0] == pytest.approx(1.0, abs=0.5 if kind == "ubinary" else 1e-3)
    if kind == "int8":
        (tmp_path / "x.npy.json").unlink()
        with pytest.raises(UserError, match=r"x\.npy\.json: says no ranges"):
            list(find_similar(dataclasses.replace(asked, dimensions=size)))


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
        ((score, _),) = scores_of(find_similar(SimilarConfig(**asked, **chosen)))
        _, cosines = nearest(np.load(output), embedder.embed("a dog", name), 1)
        assert score == pytest.approx(cosines[0, 0], abs=1e-3)
    with pytest.raises(UserError, match="another pooling or prompt"):
        list(find_similar(SimilarConfig(**asked)))


def test_bits_are_compared_with_as_many_numbers_as_they_were_made_of(model, lines, tmp_path):
    given = {"model": model, "input_file": lines}
    output = tmp_path / "x.npy"
    embed_file(EmbedConfig(**given, output_file=output, vector_type="ubinary", dimensions=12))
    asked = SimilarConfig(**given, vectors_file=output, query=("a cat",), dimensions=13)
    with pytest.raises(UserError, match=r"have 12 numbers, but those of .* have 13; name"):
        list(find_similar(asked))


def test_a_file_of_queries_has_a_column_of_its_own(similar, tmp_path):
    path = tmp_path / "queries.csv"
    path.write_text("id,asked,other\n1,a cat,the\n")
    with pytest.raises(UserError, match="name it with `query_column`"):
        similar(query_file=str(path))
    assert similar(query_file=str(path), query_column="asked", top_k=1)[0] == "a cat"


@pytest.mark.parametrize("chosen", [{}, {"prompt_name": "other"}, {"dimensions": 8}])
def test_texts_and_queries_of_an_index_have_their_prompts(lines, tmp_path, chosen):
    model = str(write_prompted(tmp_path / "prompted"))
    embedder, name = Embedder.from_pretrained(model), chosen.get("prompt_name")
    given = {"model": model, "index": tmp_path / "index", "query": ("a dog",), "top_k": 9}
    found = scores_of(search(SearchConfig(**given, **chosen, input_file=lines)))
    texts = [text for text in TEXTS if text]
    documents = unit(embedder.embed(texts, name or "document", chosen.get("dimensions")))
    query = unit(embedder.embed("a dog", name or "query", chosen.get("dimensions")))
    right = dict(zip(texts, (documents @ query[0]).tolist(), strict=True))
    assert {text: score for score, text in found} == pytest.approx(right, abs=1e-3)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (np.zeros([6, 5], "float32"), "have 5 numbers"),
        (np.zeros([2, 16], "float32"), "has 2 vectors, but .* has 6 texts"),
        (np.array([{}], object), "cannot be read as a file of vectors"),
        (np.full([6, 16], np.nan, "float32"), "npy: vectors .* NaN, .*; make it with embed"),
    ],
)
def test_other_vectors_are_refused(similar, tmp_path, content, sentence):
    np.save(tmp_path / "other.npy", content, allow_pickle=True)
    with pytest.raises(UserError, match=sentence):
        similar(query=("a",), vectors_file=tmp_path / "other.npy")


def test_vectors_of_another_model_of_the_same_size_are_refused(similar, tmp_path):
    other = write_encoder(tmp_path / "other", initializer_range=0.5)
    with pytest.raises(UserError, match=r"x\.npy\.json: says .* another model"):
        similar(query=("a",), model=str(other))
    with pytest.raises(UserError, match="another pooling"):
        similar(query=("a",), pooling="cls")


def test_vectors_of_another_file_of_as_many_texts_are_told(similar, tmp_path, caplog):
    (tmp_path / "others.txt").write_text("the dog\n" * len(TEXTS))
    similar(query=("a",))
    assert "made of another file" not in caplog.text
    similar(query=("a",), input_file=str(tmp_path / "others.txt"))
    assert caplog.text.count("made of another file") == 1


def test_vectors_of_another_column_are_told(model, tmp_path, caplog):
    (tmp_path / "x.csv").write_text("title,body\na cat,the dog runs\na dog,the table\n")
    given = {"model": model, "input_file": str(tmp_path / "x.csv")}
    output = tmp_path / "x.npy"
    embed_file(EmbedConfig(**given, text_column="body", output_file=output))
    asked = SimilarConfig(**given, text_column="body", vectors_file=output, query=("a",))
    caplog.clear()
    list(find_similar(asked))
    assert "another file" not in caplog.text
    list(find_similar(dataclasses.replace(asked, text_column="title")))
    assert "made of another file or column" in caplog.text


def test_a_text_is_shown_as_one_line():
    found = [module.Found(7, 0.5, "a text\n  1.000  8  another"), module.Found("x", 0.25, None)]
    assert list(module.lines_of("a\r\nquery", found)) == [
        *("a query", "  0.500  7  a text 1.000 8 another", "  0.250  x  None")
    ]


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
        list(find_similar(config))


@pytest.fixture
def asked(model, lines, tmp_path):
    given = {"model": model, "index": tmp_path / "index"}
    return lambda **options: list(search(SearchConfig(**{**given, **options})))


def test_texts_are_added_once_and_empty_ones_never(asked, lines, tmp_path):
    asked(input_file=lines)
    (tmp_path / "more.txt").write_text("a cat\n\nthe table\nthe table\n")
    found = asked(input_file=str(tmp_path / "more.txt"), query=("the table",), top_k=9)
    assert sorted(line.split("  ")[-1] for line in found[1:]) == sorted(
        [*filter(None, TEXTS), "the table"]
    )
    assert found[:2] == ["the table", "  1.000  6  the table"]


def test_a_text_counts_when_its_vector_is_there_or_none_is_made(asked, lines, capsys):
    asked(input_file=lines, query=("a", "b"))
    asked(input_file=lines)
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("index: ")]
    assert [line.split(" in ")[0] for line in said] == ["index: 6 of 6 texts"] * 2


def test_two_that_add_do_not_add_a_text_twice(asked, lines, tmp_path, monkeypatch):
    open_index, others = module.VectorIndex.open, []

    def opened(*given, **more):
        """Opens an index that another process then adds to."""
        index, other = open_index(*given, **more), open_index(*given, **more)
        if not others:
            others.append(other)
            other.add(["the table"])
        return index

    asked(input_file=lines)
    (tmp_path / "more.txt").write_text("the table\n")
    monkeypatch.setattr(module.VectorIndex, "open", opened)
    found = asked(input_file=str(tmp_path / "more.txt"), query=("the table",), top_k=9)
    assert sum("the table" in line for line in found[1:]) == 1
    with others[0].alone(), pytest.raises(UserError, match="another process adds to it"):
        asked(input_file=lines)


def test_an_index_that_another_makes_meanwhile_is_opened(asked, lines, tmp_path, monkeypatch):
    open_embedder, others = module.open_embedder, []

    def opened(*given):
        embedder = open_embedder(*given)
        others.append(module.VectorIndex.create(tmp_path / "index", embedder))
        return embedder

    with monkeypatch.context() as patch:
        patch.setattr(module, "open_embedder", opened)
        assert asked(input_file=lines, query=("a cat",))[1] == "  1.000  2  a cat"
    assert others


def test_an_empty_folder_is_a_new_index(asked, lines, tmp_path):
    (tmp_path / "index").mkdir()
    with pytest.raises(UserError, match="index: no such index; give `input_file`"):
        asked(query=("a cat",))
    assert asked(input_file=lines, query=("a cat",))[1] == "  1.000  2  a cat"


def test_int8_is_calibrated_on_the_texts_of_the_index(asked, lines, monkeypatch):
    asked(input_file=lines)
    opened, open_embedder = [], module.open_embedder
    monkeypatch.setattr(
        module,
        "open_embedder",
        lambda how, texts: opened.append([*texts]) or open_embedder(how, ()),
    )
    asked(query=("a cat",))
    assert opened == [[text for text in TEXTS if text]]


def test_an_index_is_asked_in_json(asked, lines):
    (line,) = asked(input_file=lines, query=("a cat",), top_k=1, format="json")
    answer = json.loads(line)
    assert answer["query"] == "a cat"
    (one,) = answer["results"]
    assert (one["id"], one["text"]) == (2, "a cat")
    assert one["score"] == pytest.approx(1.0)


def test_a_stop_keeps_what_was_added_and_the_same_command_continues(asked, lines, monkeypatch):
    add, count = module.VectorIndex.add, []

    def stopped(self, texts):
        count.append(len(texts))
        if len(count) == 2:
            raise KeyboardInterrupt
        add(self, texts)

    monkeypatch.setattr(Embedder, "texts_at_once", 2)
    with monkeypatch.context() as patch:
        patch.setattr(module.VectorIndex, "add", stopped)
        with pytest.raises(KeyboardInterrupt) as stop:
            asked(input_file=lines)
    assert stop.value.__notes__[0].startswith("2 texts are in ")
    monkeypatch.setattr(module.VectorIndex, "add", lambda *given: (count.append(0), add(*given)))
    found = asked(input_file=lines, query=("a cat",), top_k=9)
    assert len(count) == 2 + 2  # two more blocks
    assert len(found) == 1 + 5


def test_a_graph_is_made_where_it_is_asked_for_and_its_recall_is_printed(asked, lines):
    pytest.importorskip("faiss")
    said, query, first, *_ = asked(input_file=lines, query=("a cat",), method="hnsw")
    assert (
        said
        == "recall@10 of the graph: 1.000 (5 of the 5 vectors searched for among the others; ef=64)"
    )
    assert (query, first) == ("a cat", "  1.000  2  a cat")
    again = asked(query=("a cat",), method="hnsw")
    assert again[0] == said
    exact = asked(query=("a cat",), method="exact")
    assert exact == again[1:]


def test_a_recall_that_is_wanted_asks_for_the_graph_and_is_said_where_it_is_not_reached(
    asked, lines, monkeypatch
):
    pytest.importorskip("faiss")
    found = asked(input_file=lines, query=("a cat",))
    said, *again = asked(query=("a cat",), recall=0.5)
    assert said.startswith("recall@10 of the graph: 1.000 (5 of the 5")
    assert again == found
    less = {"recall": 0.9, "queries": 5, "rows": 5, "ef": 64}
    monkeypatch.setattr(module.VectorIndex, "_measured", lambda *_: {**less})
    assert asked(query=("a cat",), recall=0.95)[0].endswith("; ef=64); 0.95 was wanted")
    with pytest.raises(UserError, match=r"`recall` is that of a graph; leave it out, or `method=e"):
        asked(query=("a cat",), recall=0.5, method="exact")


def test_an_index_of_before_that_says_no_length_of_its_texts_is_searched(asked, lines, tmp_path):
    asked(input_file=lines)
    path = tmp_path / "index" / "description.json"
    description = json.loads(path.read_text())
    del description["model"]["max_seq_length"]
    path.write_text(json.dumps(description))
    assert asked(query=("a cat",), max_seq_length=5)[1] == "  1.000  2  a cat"


def test_another_index_is_refused(asked, lines, tmp_path):
    other = write_encoder(tmp_path / "other", initializer_range=0.5)
    wide = write_encoder(tmp_path / "wide", hidden_size=32)
    asked(input_file=lines)
    for options, sentence in (
        ({"index": Path("none")}, "none: no such index; give `input_file`"),
        ({"metric": "dot"}, "has `metric=cosine`; leave out"),
        ({"pooling": "cls"}, "made with another pooling"),
        ({"max_seq_length": 5}, "made with another `max_seq_length`; name what made it"),
        ({"model": str(other)}, "made with another model"),
        ({"model": str(wide)}, "of a model with 16 numbers, but this one has 32"),
    ):
        with pytest.raises(UserError, match=sentence):
            asked(query=("a",), **options)
