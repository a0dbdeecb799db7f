"""A tiny model of several heads, and its graph."""

import pytest

from keras_bert_impl.models.pretrainer import BertPretrainer
from tests.support.tiny_bert import TINY, scatter_weights


@pytest.fixture(scope="package")
def model():
    return scatter_weights(BertPretrainer(TINY.replace(hidden_act="gelu_erf")))


@pytest.fixture(scope="package")
def graph(model):
    pytest.importorskip("openvino", reason="needs the extra `openvino`")
    from keras_bert_impl.engines.openvino_graph import openvino_graph

    return openvino_graph(model)
