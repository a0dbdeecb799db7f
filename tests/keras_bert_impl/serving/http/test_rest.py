import base64
import functools
import json
from types import SimpleNamespace

import pytest

from keras_bert_impl.serving.answerer import Input
from keras_bert_impl.serving.http import rest as form
from keras_bert_impl.serving.http.bodies import RequestError
from keras_bert_impl.serving.http.openapi import openapi_document
from keras_bert_impl.serving.http.waiting import Answered
from tests.support.toy_answerer import ToyAnswerer, ToyModel

_answerer = functools.partial(SimpleNamespace, options=())
TEXT = _answerer(inputs=[Input("text")], outputs={"score": ""}, kind="number")
PAIR = _answerer(
    inputs=[Input("text_a"), Input("text_b", needed=False)], outputs={"label": "", "logits": ""}
)
CHOICES = _answerer(
    inputs=[Input("context"), Input("endings", is_list=True)], outputs={"ending": ""}
)


def read(answerer, body, method="predict"):
    return form.read(SimpleNamespace(answerers={"text": answerer}, description={}), method, body)


B64 = {"b64": base64.b64encode("배가 고프다".encode()).decode()}


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        ({"instances": ["a", "b"]}, ["a", "b"]),
        ({"instances": [{"text": "a"}]}, ["a"]),
        ({"instances": [B64, {"text": B64}]}, ["배가 고프다"] * 2),
        ({"inputs": ["a", "b"]}, ["a", "b"]),
        ({"inputs": {"text": ["a", B64]}}, ["a", "배가 고프다"]),
        ({"instances": ["a"], "signature_name": "text"}, ["a"]),
    ],
)
def test_texts_may_be_written_in_every_documented_way(body, texts):
    assert read(TEXT, body).instances == [{"text": text} for text in texts]


def test_columns_of_several_inputs_are_put_together_by_rows():
    asked = read(PAIR, {"inputs": {"text_b": ["c", "d"], "text_a": ["a", "b"]}})
    assert asked.instances == [{"text_a": "a", "text_b": "c"}, {"text_a": "b", "text_b": "d"}]


def test_a_list_of_texts_is_a_list_where_the_model_takes_one():
    body = {"instances": [{"context": "a", "endings": ["b", B64]}]}
    (instance,) = read(CHOICES, body).instances
    assert instance == {"context": "a", "endings": ["b", "배가 고프다"]}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"instances": ["a"], "inputs": ["a"]},
        {"instances": []},
        {"instances": "a"},
        {"instances": [1]},
        {"instances": [None]},
        {"instances": [["a"]]},
        {"instances": [{}]},
        {"instances": [{"text": "a", "more": "b"}]},
        {"instances": [{"text": {"b64": "?"}}]},
        {"instances": [{"text": {"b64": 7}}]},
        {"instances": [{"b64": "/w=="}]},
        {"inputs": {}},
        {"inputs": {"text": "a"}},
        {"inputs": {"text": []}},
        {"inputs": 3},
        {"instances": ["a"], "more": 1},
    ],
)
def test_anything_else_is_refused_with_one_sentence(body):
    with pytest.raises(RequestError) as refused:
        read(TEXT, body)
    assert refused.value.status_code == 400
    assert str(refused.value).endswith(".")
    assert "\n" not in str(refused.value)


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(RequestError, match="differ in their lengths"):
        read(PAIR, {"inputs": {"text_a": ["a"], "text_b": ["b", "c"]}})


def test_answers_with_one_field_stand_bare_and_others_as_objects():
    answers = [{"label": "yes", "logits": [1.0]}, {"label": "no", "logits": [0.0]}]
    by_rows, by_columns = {"instances": [{"text_a": "a"}]}, {"inputs": {"text_a": ["a"]}}
    assert read(PAIR, by_rows).write(Answered(answers, 1)) == {"predictions": answers}
    columns = {"label": ["yes", "no"], "logits": [[1.0], [0.0]]}
    assert read(PAIR, by_columns).write(Answered(answers, 1)) == {"outputs": columns}
    scores = Answered([{"score": 2.0}], 1)
    assert read(TEXT, {"inputs": ["a"]}).write(scores) == {"outputs": [2.0]}
    assert read(TEXT, {"instances": ["a"]}).write(scores) == {"predictions": [2.0]}


def test_examples_share_a_context_and_may_have_lists_of_one_value():
    pairs = _answerer(inputs=[Input("text_a"), Input("text_b")], kind="number", outputs={})
    body = {"context": {"text_a": "a"}, "examples": [{"text_b": "b"}, {"text_b": ["c"]}]}
    asked = read(pairs, body, "regress")
    assert [one["text_b"] for one in asked.instances] == ["b", "c"]
    assert {one["text_a"] for one in asked.instances} == {"a"}


@pytest.mark.parametrize("name", [None, "", "text", "serving_default"])
def test_the_first_signature_is_the_default(name):
    model = ToyModel()
    asked = form.read(model, "predict", {"instances": ["a"], "signature_name": name})
    assert asked.answerer is model.answerers["text"]


@pytest.mark.parametrize(
    ("body", "signature"),
    [
        ({"instances": ["a"]}, "text"),
        ({"instances": [{"text": "a"}]}, "text"),
        ({"instances": [{"text_a": "a", "text_b": "b"}]}, "text_pair"),
        ({"inputs": {"text_a": ["a"], "text_b": ["b"]}}, "text_pair"),
        ({"inputs": [{"b64": "YQ=="}]}, "text"),
        ({"examples": [{"text_b": "b"}], "context": {"text_a": "a"}}, "text_pair"),
        ({"instances": ["a"], "signature_name": "text"}, "text"),
    ],
)
def test_without_a_name_the_signature_is_asked_that_takes_what_is_sent(body, signature):
    pair = ToyAnswerer(signature="text_pair", inputs=(Input("text_a"), Input("text_b")))
    model = ToyModel({"text": ToyAnswerer(), "text_pair": pair})
    method = "regress" if "examples" in body else "predict"
    assert form.read(model, method, body).answerer.signature == signature


@pytest.mark.parametrize(
    "body",
    [[], "a", None, *({"instances": ["a"], "signature_name": name} for name in ("x", 3, {}))],
)
def test_an_unknown_signature_is_refused(body):
    with pytest.raises(RequestError):
        form.read(ToyModel(), "predict", body)


@pytest.mark.parametrize(
    "body", [{}, {"examples": []}, {"examples": ["a"]}, {"examples": [{}]}, {"context": []}]
)
def test_examples_that_are_none_are_refused(body):
    with pytest.raises(RequestError):
        read(TEXT, body, "regress")


def test_metadata_have_the_form_of_a_signature_def():
    body = form.metadata_body("toy", 1, ToyModel())
    assert body["model_spec"] == {"name": "toy", "signature_name": "", "version": "1"}
    signature = body["metadata"]["signature_def"]["signature_def"]["serving_default"]
    assert signature["inputs"]["text"]["dtype"] == "DT_STRING"
    assert signature["method_name"] == "tensorflow/serving/predict"


def test_the_document_describes_the_paths_of_each_model():
    document = openapi_document({"toy": ToyModel()})
    assert document["openapi"] == "3.1.0"
    assert {"/v1/models/toy", "/v1/models/toy:predict", "/v1/models/toy:regress"} <= set(
        document["paths"]
    )
    assert "/v1/embeddings" not in document["paths"]
    json.dumps(document)
