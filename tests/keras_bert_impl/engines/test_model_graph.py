"""A model's graph: made once, found again, made again for other weights."""

import numpy as np
import pytest

from keras_bert_impl.checkpoints.model_directory import GRAPHS_FOLDER, write_model_directory
from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.engines import kept_graph
from keras_bert_impl.engines.kept_graph import UnbuiltModel, model_graph, quantized_graph
from keras_bert_impl.engines.openvino_engine import OpenVinoEngine
from keras_bert_impl.engines.openvino_graph import graph_sha256
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.keras_bert_impl.engines.test_openvino_engine import inputs
from tests.support.damage import damage
from tests.support.tiny_bert import VOCABULARY

pytest.importorskip("openvino", reason="needs the extra `openvino`")


@pytest.fixture
def folder(model, tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_BERT_CACHE", str(tmp_path / "cache"))
    write_model_directory(tmp_path / "model", model, TextSettings(VOCABULARY))
    return tmp_path / "model"


@pytest.fixture
def built(model):
    """How often the model was built."""
    return []


@pytest.fixture
def unbuilt(model, folder, built):
    def build():
        built.append(1)
        return model

    return lambda: UnbuiltModel(build, find_model(folder), "BertPretrainer")


def outputs_of(graph, batch):
    ((_, outputs),) = OpenVinoEngine(lambda: graph, threads=1).compute([(0, batch)])
    return outputs


def no_texts():
    return pytest.fail("the scales are there")


def test_the_second_start_builds_no_model(model, folder, unbuilt, built):
    for precision in ("float32", "bfloat16"):
        outputs = outputs_of(model_graph(unbuilt(), precision, folder, list), inputs())
    assert built == [1]
    for name, value in model(inputs()).items():
        np.testing.assert_allclose(outputs[name], value, atol=1e-5, err_msg=name)


def test_other_weights_and_damage_build_it_again(folder, unbuilt, built):
    model_graph(unbuilt(), "float32", folder, list)
    damage(folder / GRAPHS_FOLDER / "BertPretrainer" / "model.bin", "flipped")
    model_graph(unbuilt(), "float32", folder, list)
    assert len(built) == 2
    weights = folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    model_graph(unbuilt(), "float32", folder, list)
    assert len(built) == 3
    model_graph(unbuilt(), "float32", folder, list)
    assert len(built) == 3


def test_nothing_is_kept_of_weights_that_were_replaced_while_they_were_read(model, folder):
    def build():
        (folder / "model.safetensors").write_bytes((folder / "other").read_bytes())
        return model

    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (folder / "other").write_bytes(content)
    unbuilt = UnbuiltModel(build, find_model(folder), "BertPretrainer")
    model_graph(unbuilt, "float32", folder, list)
    assert not (folder / GRAPHS_FOLDER).exists()


@pytest.mark.slow
def test_scales_are_found_once_for_built_and_unbuilt_models(model, folder, unbuilt, built):
    pytest.importorskip("nncf", reason="needs the extra `openvino`")
    rows = [inputs(batch=1, seed=seed) for seed in range(8)]
    graphs = [
        model_graph(model, "int8", folder, lambda: rows),
        model_graph(model, "int8", folder, no_texts),
        model_graph(unbuilt(), "int8", folder, no_texts),
    ]
    assert built == [1]
    graphs.append(model_graph(unbuilt(), "int8", folder, no_texts))
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
