"""OpenVINO's graph of a model."""

import ctypes
import gc
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.engines.openvino_engine import OpenVinoEngine
from keras_bert_impl.engines.openvino_graph import (
    beside_the_main_thread,
    evenly_spread,
    graph_sha256,
    head_products,
    openvino_core,
    quantize,
)
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.base import encoder_inputs
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.token_models import BertSpanLabeler, BertTokenClassifier
from tests.keras_bert_impl.engines.test_openvino_engine import inputs
from tests.support.tiny_bert import TINY


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


@given(st.integers(0, 3000), st.integers(2, 40))
def test_a_sample_is_spread_over_all(number, count):
    sample = evenly_spread(range(number), count)
    assert min(number, count // 2) <= len(sample) <= count
    assert len(set(np.diff(sample).tolist())) <= 1
    assert sample[:1] == [0] * bool(number)
    assert not number or number - sample[-1] <= max(1, 2 * number / count)


def test_what_stands_behind_the_encoder_keeps_its_digits(graph):
    kept = head_products(graph)
    assert kept
    assert all("pooler" in name for name in kept), kept


@pytest.mark.parametrize(
    "make",
    [
        BertSpanLabeler,
        lambda config: BertTokenClassifier(config, 9),
        lambda config: BertClassifier(config, 99),
    ],
)
def test_heads_are_no_products_that_an_engine_would_round(make):
    pytest.importorskip("openvino", reason="needs the extra `openvino`")
    from keras_bert_impl.engines.openvino_graph import openvino_graph

    operations = openvino_graph(make(TINY)).get_ops()
    names = [x.get_friendly_name() for x in operations if x.get_type_name() == "MatMul"]
    assert names
    assert all("encoder" in name for name in names)


def test_texts_are_needed(graph):
    pytest.importorskip("nncf", reason="needs the extra `openvino`")
    with pytest.raises(UserError, match="needs texts to find its scales on"):
        quantize(graph.clone(), list)


openvino = pytest.importorskip("openvino", reason="needs the extra `openvino`")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux' structure")


class SignalStack(ctypes.Structure):
    _fields_ = (("start", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))


def signal_stack():
    stack = SignalStack()
    assert ctypes.CDLL(None).sigaltstack(None, ctypes.byref(stack)) == 0
    return stack.start, stack.size


def let_go_in_a_thread(things):
    thread = threading.Thread(target=lambda: (things.clear(), gc.collect()))
    thread.start()
    thread.join()


def load_another_plugin():
    core = openvino.Core()  # as other libraries do
    core.get_property("CPU", "FULL_DEVICE_NAME")
    return core


def test_an_engine_leaves_the_stack_alone(graph):
    before = signal_stack()
    engine = OpenVinoEngine(graph.clone, threads=1)
    assert len(list(engine.compute([(0, inputs(batch=1, seed=0))]))) == 1
    assert signal_stack() == before
    things = [engine]
    del engine
    let_go_in_a_thread(things)
    assert signal_stack() == before


def test_so_does_another_core_beside_the_main_thread():
    before = signal_stack()
    things = [beside_the_main_thread(load_another_plugin)]
    let_go_in_a_thread(things)
    assert signal_stack() == before


def test_there_is_one_core():
    assert openvino_core() is openvino_core()
