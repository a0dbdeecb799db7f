"""The choice of an engine."""

import importlib.util

import pytest

from keras_bert_impl.engines.config import EngineConfig, need_openvino
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
    ("missing", "precision", "sentence"),
    [
        ("openvino", "float32", "`engine=openvino` needs the package openvino"),
        ("nncf", "int8", "`precision=int8` needs the package nncf"),
    ],
)
def test_a_missing_package_names_the_extra(monkeypatch, missing, precision, sentence):
    known = importlib.util.find_spec
    found = {"openvino": known("json"), "nncf": known("json"), missing: None}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: found[name])
    with pytest.raises(UserError, match=rf"{sentence}.*pip install .*openvino"):
        need_openvino(precision)
