"""The engine of a choice."""

import pytest

from keras_bert_impl.engines.engine import KerasEngine
from keras_bert_impl.engines.open_engine import open_engine


def test_tensorflow_is_the_default(model):
    assert isinstance(open_engine(model), KerasEngine)


def test_openvino_makes_its_graph_at_the_first_use(model, monkeypatch):
    pytest.importorskip("openvino", reason="needs the extra `openvino`")
    made = "keras_bert_impl.engines.openvino_engine.openvino_graph"
    monkeypatch.setattr(made, lambda _: pytest.fail("nothing is computed yet"))
    engine = open_engine(model, "openvino", "bfloat16")
    assert (engine.tokens_at_once, engine.few_lengths) == (1024, False)
