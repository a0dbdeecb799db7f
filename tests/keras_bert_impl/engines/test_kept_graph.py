"""Graphs that are kept: found again as they were, or made again."""

import dataclasses
import json
import logging
import multiprocessing
import shutil

import numpy as np
import pytest

from keras_bert_impl.checkpoints.model_directory import (
    GRAPHS_FOLDER,
    check_folder,
    write_model_directory,
)
from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.engines import kept_graph
from keras_bert_impl.engines.kept_graph import UnbuiltModel, keep_graph, places_of, read_graph
from keras_bert_impl.engines.openvino_engine import OpenVinoEngine
from keras_bert_impl.engines.openvino_graph import graph_sha256
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.keras_bert_impl.engines.test_openvino_engine import inputs
from tests.support.damage import DAMAGES, damage
from tests.support.tiny_bert import TINY, VOCABULARY

pytest.importorskip("openvino", reason="needs the extra `openvino`")
NOTE = {"source": "abc"}


@pytest.fixture
def folder(model, tmp_path):
    write_model_directory(tmp_path / "model", model, TextSettings(VOCABULARY))
    return tmp_path / "model"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_BERT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def unbuilt(folder, **settings):
    return UnbuiltModel(lambda: None, find_model(folder), "BertPretrainer", settings)


def test_it_is_found_again_and_computes_the_same(graph, folder):
    places = places_of(folder, "BertPretrainer")
    keep_graph(places, graph, NOTE)
    kept = read_graph(places, NOTE)
    assert kept.folder == folder / GRAPHS_FOLDER / "BertPretrainer"
    found = []
    for one in (graph, kept.graph):
        ((_, outputs),) = OpenVinoEngine(lambda one=one: one, threads=1).compute([(0, inputs())])
        found.append(outputs)
    for name, value in found[0].items():
        np.testing.assert_array_equal(found[1][name], value, err_msg=name)


def test_what_is_of_something_else_is_not_taken(graph, folder):
    places = places_of(folder, "a")
    keep_graph(places, graph, NOTE)
    assert read_graph(places, {"source": "abd"}) is None
    assert read_graph(places_of(folder, "b"), NOTE) is None


@pytest.mark.parametrize("name", ["model.xml", "model.bin", "description.json"])
def test_what_is_damaged_is_not_taken(graph, folder, name):
    places = places_of(folder, "a")
    harmless = {"last byte gone"} if name == "description.json" else set()  # a line's end
    for how in set(DAMAGES) - harmless:
        keep_graph(places[:1], graph, NOTE)
        damage(places[0] / name, how)
        assert read_graph(places, NOTE) is None, how
        shutil.rmtree(places[0])


def damaged(folder):
    (folder / "model.bin").write_bytes(b"dear")


def with_more(folder):
    (folder / "notes.txt").write_text("dear")


def moved(levels):
    """A link in the place of a folder, to a graph that was kept."""

    def move(folder):
        at = [folder, *folder.parents][levels]
        at.rename(at.with_name("elsewhere"))
        at.symlink_to("elsewhere")

    return move


@pytest.mark.parametrize("found", [damaged, with_more, moved(0), moved(1), moved(2)])
def test_what_is_no_graph_of_ours_is_left_alone_and_the_graph_kept_in_the_cache(
    graph, folder, cache, found
):
    places = places_of(folder, "a")
    keep_graph(places, graph, NOTE)
    found(places[0])
    before = {path: path.read_bytes() for path in folder.rglob("*/*.*") if path.is_file()}
    newer = {"source": "newer"}
    keep_graph(places, graph, newer)
    assert {path: path.read_bytes() for path in before} == before
    assert read_graph(places, newer).folder.is_relative_to(cache)


def test_a_damaged_graph_in_the_cache_is_replaced(graph, folder, cache):
    (folder / GRAPHS_FOLDER).write_text("in the way")
    places = places_of(folder, "a")
    for _ in range(2):
        keep_graph(places, graph, NOTE)
        assert read_graph(places, NOTE).folder.is_relative_to(cache)
        (places[1] / "model.bin").write_bytes(b"damaged")
        assert read_graph(places, NOTE) is None


def test_where_the_models_folder_cannot_be_written_it_lies_in_the_cache(graph, folder, cache):
    (folder / GRAPHS_FOLDER).write_text("in the way")
    places = places_of(folder, "a")
    keep_graph(places, graph, NOTE)
    assert read_graph(places, NOTE).folder.is_relative_to(cache)


def test_where_nothing_can_be_written_the_log_says_so(graph, folder, cache, caplog):
    (folder / GRAPHS_FOLDER).write_text("in the way")
    cache.write_text("in the way")
    with caplog.at_level(logging.WARNING):
        keep_graph(places_of(folder, "a"), graph, NOTE)
    assert "The graph is made anew each time" in caplog.text


def test_an_empty_variable_leaves_the_cache_out(folder, monkeypatch):
    monkeypatch.setenv("KERAS_BERT_CACHE", "")
    assert places_of(folder, "a") == [folder / GRAPHS_FOLDER / "a"]


def test_nothing_is_kept_for_a_checkpoint_of_a_run_or_where_none_is(folder, tmp_path):
    (folder / "checkpoint.json").write_text("{}")
    assert places_of(folder, "a") == []
    assert places_of(tmp_path / "gone", "a") == []
    assert places_of(None, "a") == []


def test_a_model_may_be_written_over_one_with_kept_graphs(graph, folder):
    keep_graph(places_of(folder, "a"), graph, NOTE)
    check_folder(folder)


def test_every_byte_of_the_weights_counts_and_the_folders_name_does_not(folder, tmp_path):
    before = unbuilt(folder).fingerprint()
    moved = shutil.copytree(folder, tmp_path / "elsewhere")
    assert unbuilt(moved).fingerprint() == before
    weights = moved / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert unbuilt(moved).fingerprint() != before


def test_so_do_the_configuration_the_settings_and_the_code(folder, monkeypatch):
    before = unbuilt(folder).fingerprint()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "layer_norm_eps": 1e-6}))
    changed = [unbuilt(folder).fingerprint(), unbuilt(folder, pooling="cls").fingerprint()]
    monkeypatch.setattr(kept_graph, "code_sha256", lambda: "another version")
    changed.append(unbuilt(folder).fingerprint())
    named = dataclasses.replace(unbuilt(folder), name="BertEncoder")
    assert len({before, *changed, named.fingerprint()}) == 5


def test_a_tf1_checkpoint_counts_with_its_own_parts(tmp_path):
    parts = ["a.ckpt.index", "a.ckpt.data-00000-of-00001", "a.ckpt-2.index", "a.ckpt.meta"]
    for name in parts:
        (tmp_path / name).write_text(name)
    source = dataclasses.make_dataclass("Source", ["folder", "checkpoint", "config"])
    one = UnbuiltModel(None, source(tmp_path, tmp_path / "a.ckpt", TINY), "a")
    before = one.fingerprint()
    for name in parts:
        (tmp_path / name).write_text("other")
        again = dataclasses.replace(one).fingerprint()
        assert (again != before) == (name in parts[:2]), name
        (tmp_path / name).write_text(name)


def _keep_often(folder, path):
    from keras_bert_impl.engines.openvino_graph import read_graph_file

    graph = read_graph_file(path)
    for _ in range(15):
        keep_graph(places_of(folder, "a"), graph, NOTE)


def test_processes_that_keep_it_at_once_do_no_harm(graph, folder):
    places = places_of(folder, "a")
    keep_graph(places_of(folder, "first"), graph, NOTE)
    path = folder / GRAPHS_FOLDER / "first" / "model.xml"
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=_keep_often, args=(folder, path)) for _ in range(2)]
    for other in others:
        other.start()
    expected, seen = graph_sha256(read_graph(places_of(folder, "first"), NOTE).graph), 0
    while any(other.is_alive() for other in others):
        kept = read_graph(places, NOTE)
        if kept is not None:
            assert graph_sha256(kept.graph) == expected
            seen += 1
    assert seen
    assert [other.exitcode for other in others] == [0, 0]
    assert read_graph(places, NOTE) is not None
    assert [path.name for path in places[0].parent.iterdir() if path.name.startswith(".")] == []
