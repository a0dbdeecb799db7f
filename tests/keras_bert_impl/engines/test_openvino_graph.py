"""OpenVINO's graph of a model."""

import pytest

from keras_bert_impl.engines.openvino_graph import graph_sha256
from keras_bert_impl.models.base import encoder_inputs


def test_it_has_the_models_names_and_open_shapes(model, graph):
    assert {port.any_name for port in graph.inputs} == {*encoder_inputs(), "masked_lm_positions"}
    assert all(str(port.partial_shape) == "[?,?]" for port in graph.inputs)
    assert {port.any_name for port in graph.outputs} == set(model.output)


def test_the_exact_gelu_is_one_operation(graph):
    kinds = [operation.get_type_name() for operation in graph.get_ops()]
    assert kinds.count("Gelu") == 3  # of two layers and of the masked-LM head
    assert "Erf" not in kinds


def test_other_weights_are_another_graph(model, graph):
    pytest.importorskip("openvino")
    from keras_bert_impl.engines.openvino_graph import openvino_graph

    first = graph_sha256(graph)
    gamma = model.encoder.embeddings.layer_norm.gamma
    before = gamma.numpy()
    gamma.assign(2 * before)
    changed = graph_sha256(openvino_graph(model))
    gamma.assign(before)
    assert len({first, changed}) == 2
    assert graph_sha256(graph) == first


def test_nothing_is_reported_to_anybody_while_it_is_made(graph):
    pytest.importorskip("openvino.tools.ovc")
    from openvino.tools.ovc import telemetry_utils

    assert graph is not None
    assert telemetry_utils.tm.__name__.endswith("telemetry_stub")
