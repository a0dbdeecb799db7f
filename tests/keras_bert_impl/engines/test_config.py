"""The choice of an engine."""

import pytest

from keras_bert_impl.engines.config import EngineConfig, need_openvino
from keras_bert_impl.engines.openvino_graph import quantize
from keras_bert_impl.errors import UserError


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"engine": "torch"}, "`engine=torch` is unknown; choose tensorflow or openvino"),
        ({"precision": "int4"}, "`precision=int4` is unknown"),
        (
            {"engine": "tensorflow", "precision": "int8"},
            "`precision=int8` needs `engine=openvino`; give both",
        ),
    ],
)
def test_what_does_not_exist_is_one_sentence(options, sentence):
    with pytest.raises(UserError, match=sentence):
        EngineConfig(**options)


@pytest.mark.parametrize(
    ("needs", "sentence"),
    [
        (need_openvino, "`engine=openvino` needs the package openvino"),
        (lambda: quantize(None, list), "`precision=int8` needs the package nncf"),
    ],
)
def test_a_missing_package_names_the_extra(monkeypatch, needs, sentence):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=rf"{sentence}.*pip install .*openvino"):
        needs()
