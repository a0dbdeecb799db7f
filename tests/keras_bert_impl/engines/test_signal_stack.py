"""The stack that the main thread handles signals on stays its own, whoever lets OpenVINO go."""

import ctypes
import gc
import sys
import threading

import pytest

from keras_bert_impl.engines.openvino_engine import OpenVinoEngine
from keras_bert_impl.engines.openvino_graph import beside_the_main_thread, openvino_core
from tests.keras_bert_impl.engines.test_openvino_engine import inputs

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
