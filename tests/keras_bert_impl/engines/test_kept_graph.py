"""Graphs that are kept: found again as they were, or made again."""

import dataclasses
import json
import logging
import shutil

import numpy as np
import pytest

from keras_bert_impl.checkpoints.model_directory import (
    GRAPHS_FOLDER,
    check_folder,
    write_model_directory,
)
from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.checkpoints.sources import parts_of
from keras_bert_impl.engines import kept_graph
from keras_bert_impl.engines.kept_graph import (
    UnbuiltModel,
    keep_graph,
    model_graph,
    places_of,
    quantized_graph,
    read_graph,
)
from keras_bert_impl.engines.openvino_engine import OpenVinoEngine
from keras_bert_impl.engines.openvino_graph import graph_sha256
from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.keras_bert_impl.engines.test_openvino_engine import inputs
from tests.support.damage import DAMAGES, damage
from tests.support.tiny_bert import VOCABULARY

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


def test_a_damaged_graph_is_named_where_none_can_be_made(folder, graph, monkeypatch, caplog):
    def refuse(what):
        raise UserError(what)

    monkeypatch.setattr(kept_graph, "need_tensorflow", refuse)
    monkeypatch.setattr(kept_graph, "_source_of", lambda *_: NOTE)
    (place, *_) = places_of(folder, "BertPretrainer")
    keep_graph([place], graph, NOTE)
    damage(place / "model.bin", sorted(DAMAGES)[0])
    with caplog.at_level(logging.INFO), pytest.raises(UserError, match=f"kept in {place}"):
        model_graph(unbuilt(folder), "float32", folder, list)
    assert f"{place}: is damaged or of another version, and is not used." in caplog.text


def test_int8_asks_for_its_package_before_texts_are_read(graph, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match="needs the package nncf"):
        quantized_graph(graph.clone(), "a", None, lambda: 1 / 0)


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
    assert {path.name for path in parts_of(tmp_path / "a.ckpt")} == {*parts[:2]}


@pytest.fixture
def built(model):
    """How often the model was built."""
    return []


@pytest.fixture
def unbuilt_model(model, folder, built):
    def build():
        built.append(1)
        return model

    return lambda: UnbuiltModel(build, find_model(folder), "BertPretrainer")


def outputs_of(graph, batch):
    ((_, outputs),) = OpenVinoEngine(lambda: graph, threads=1).compute([(0, batch)])
    return outputs


def no_texts():
    return pytest.fail("the scales are there")


def test_the_second_start_builds_no_model(model, folder, unbuilt_model, built):
    for precision in ("float32", "bfloat16"):
        outputs = outputs_of(model_graph(unbuilt_model(), precision, folder, list), inputs())
    assert built == [1]
    for name, value in model(inputs()).items():
        np.testing.assert_allclose(outputs[name], value, atol=1e-5, err_msg=name)


def test_other_weights_and_damage_build_it_again(folder, unbuilt_model, built):
    model_graph(unbuilt_model(), "float32", folder, list)
    damage(folder / GRAPHS_FOLDER / "BertPretrainer" / "model.bin", "flipped")
    model_graph(unbuilt_model(), "float32", folder, list)
    assert len(built) == 2
    weights = folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    model_graph(unbuilt_model(), "float32", folder, list)
    assert len(built) == 3
    model_graph(unbuilt_model(), "float32", folder, list)
    assert len(built) == 3


def test_nothing_is_kept_of_weights_that_were_replaced_while_they_were_read(model, folder):
    def build():
        (folder / "model.safetensors").write_bytes((folder / "other").read_bytes())
        return model

    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (folder / "other").write_bytes(content)
    unbuilt_model = UnbuiltModel(build, find_model(folder), "BertPretrainer")
    model_graph(unbuilt_model, "float32", folder, list)
    assert not (folder / GRAPHS_FOLDER).exists()


@pytest.mark.slow
def test_scales_are_found_once_for_built_and_unbuilt_models(model, folder, unbuilt_model, built):
    pytest.importorskip("nncf", reason="needs the extra `openvino`")
    rows = [inputs(batch=1, seed=seed) for seed in range(8)]
    graphs = [
        model_graph(model, "int8", folder, lambda: rows),
        model_graph(model, "int8", folder, no_texts),
        model_graph(unbuilt_model(), "int8", folder, no_texts),
    ]
    assert built == [1]
    graphs.append(model_graph(unbuilt_model(), "int8", folder, no_texts))
    assert built == [1]
    assert (folder / GRAPHS_FOLDER / "BertPretrainer_int8" / "model.xml").exists()
    assert len({graph_sha256(graph) for graph in graphs}) == 1
    found = [outputs_of(graph, rows[3])["next_sentence_logits"] for graph in graphs]
    for graph, outputs in zip(graphs, found, strict=True):
        assert "FakeQuantize" in {operation.get_type_name() for operation in graph.get_ops()}
        np.testing.assert_array_equal(outputs, found[0])
    np.testing.assert_allclose(found[0], model(rows[3])["next_sentence_logits"], atol=0.3)


def test_nothing_is_put_into_a_checkpoint_of_a_run_or_where_one_was(graph, tmp_path, monkeypatch):
    monkeypatch.setattr(kept_graph, "quantize", lambda graph, _: graph)
    checkpoint = tmp_path / "step-00000001"
    assert quantized_graph(graph, "a", checkpoint, list) is graph
    assert not checkpoint.exists()
    checkpoint.mkdir()
    (checkpoint / "checkpoint.json").write_text("{}")
    assert quantized_graph(graph, "a", checkpoint, list) is graph
    assert len(list(checkpoint.iterdir())) == 1
