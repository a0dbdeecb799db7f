"""The document of what may be asked says of each body what the server says of it."""

import json

import numpy as np
import pytest

from keras_bert_impl.serving.answerer import Input
from keras_bert_impl.serving.forms import VectorForm
from keras_bert_impl.serving.http.app import make_app
from keras_bert_impl.serving.http.config import ServerConfig
from keras_bert_impl.serving.http.rest import ServedIndex
from tests.support.asgi_client import ask
from tests.support.toy_answerer import ToyAnswerer, ToyModel, ToyVectors

_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def allows(schema, value):
    """Whether a value is what a schema describes, in the words that the document uses."""
    kind = schema.get("type")
    if kind == "integer":
        right = type(value) is int
    else:
        right = kind is None or isinstance(value, _TYPES[kind])
    if not right or ("enum" in schema and value not in schema["enum"]):
        return False
    if "anyOf" in schema and not any(allows(one, value) for one in schema["anyOf"]):
        return False
    if "oneOf" in schema and sum(allows(one, value) for one in schema["oneOf"]) != 1:
        return False
    if isinstance(value, dict):
        known = schema.get("properties", {})
        if schema.get("additionalProperties") is False and not value.keys() <= known.keys():
            return False
        return {*schema.get("required", ())} <= value.keys() and all(
            allows(known[one], value[one]) for one in value.keys() & known.keys()
        )
    if isinstance(value, list):
        size = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
        return size and all(allows(schema.get("items", {}), one) for one in value)
    if kind == "integer":
        return schema.get("minimum", value) <= value <= schema.get("maximum", value)
    return True


class Pairs(ToyAnswerer):
    """Gives each pair a number."""

    def __init__(self):
        inputs = (Input("text_a"), Input("text_b"))
        super().__init__(signature="text_pair", inputs=inputs)

    def prepare(self, instances):
        return super().prepare([{"text": one["text_a"] + one["text_b"]} for one in instances])


class Vectors(ToyVectors):
    options = VectorForm.options

    def __init__(self):
        super().__init__()
        self.options = VectorForm.options


@pytest.fixture(scope="module")
def app():
    ranks = ToyModel({"text_pair": Pairs()}, {"activation": "Identity"})
    models = {"toy": ToyModel(), "vectors": ToyModel({"embed": Vectors()}), "ranks": ranks}
    index = ServedIndex("vectors", {}, lambda vectors, count: [[]] * len(np.array(vectors)), print)
    return make_app(models, ServerConfig(), indexes={"a": index})


PREDICT, PAIRS, REGRESS = (
    "/v1/models/toy:predict",
    "/v1/models/ranks:predict",
    "/v1/models/ranks:regress",
)
VECTORS = "/v1/models/vectors:predict"
EMBED, SEARCH, RERANK = "/v1/embeddings", "/search", "/rerank"
PAIR = {"text_a": "a", "text_b": "b"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (PREDICT, {}),
        (PREDICT, {"instances": ["a"]}),
        (PREDICT, {"instances": ["a"], "inputs": ["a"]}),
        (PREDICT, {"instances": [], "signature_name": "text"}),
        (PREDICT, {"instances": [{"text": "a"}, {"b64": "YQ=="}], "signature_name": None}),
        (PREDICT, {"instances": [{}]}),
        (PREDICT, {"instances": [["a"]]}),
        (PREDICT, {"instances": ["a"], "signature_name": "other"}),
        (PREDICT, {"inputs": {"text": ["a", {"b64": "YQ=="}]}}),
        (PREDICT, {"inputs": {"text": "a"}}),
        (PREDICT, {"inputs": {"text": []}}),
        (PREDICT, {"inputs": {}}),
        (PREDICT, {"inputs": ["a"]}),
        (PREDICT, {"instances": ["a"], "more": 1}),
        (PREDICT, {"instances": ["a"], "encoding_format": "float"}),
        (PREDICT, {"instances": ["a"], "encoding_format": "base64"}),
        (VECTORS, {"instances": ["a"], "encoding_format": "base64"}),
        (VECTORS, {"instances": [{"text": "a", "dimensions": None}], "encoding_format": None}),
        (PAIRS, {"instances": [PAIR]}),
        (PAIRS, {"instances": ["a"]}),
        (PAIRS, {"instances": [{"text_a": "a"}]}),
        (PAIRS, {"inputs": {"text_a": ["a"]}}),
        (PAIRS, {"inputs": {"text_a": ["a"], "text_b": ["b"]}}),
        (REGRESS, {"examples": [PAIR]}),
        (REGRESS, {"examples": [{"text_a": ["a"], "text_b": "b"}]}),
        (REGRESS, {"examples": [{"text_a": ["a", "b"], "text_b": "b"}]}),
        (REGRESS, {"examples": [{"text_a": "a"}]}),
        (REGRESS, {"examples": [{"text_a": "a"}], "context": {"text_b": "b"}}),
        (REGRESS, {"examples": [PAIR], "context": None}),
        (REGRESS, {"examples": []}),
        (REGRESS, {"context": PAIR}),
        (EMBED, {"model": "vectors", "input": "a"}),
        (EMBED, {"model": "vectors", "input": ["a"], "encoding_format": None, "user": None}),
        (EMBED, {"model": "vectors", "input": ["a"], "dimensions": None}),
        (EMBED, {"model": "vectors", "input": ["a"], "dimensions": "2"}),
        (EMBED, {"model": "vectors", "input": []}),
        (EMBED, {"model": "vectors", "input": [1]}),
        (EMBED, {"model": "vectors"}),
        (EMBED, {"input": "a"}),
        (EMBED, {"model": "toy", "input": "a"}),
        (SEARCH, {"query": "a"}),
        (SEARCH, {"query": ["a"], "top_k": None, "index": None}),
        (SEARCH, {"query": "a", "top_k": 0}),
        (SEARCH, {"top_k": 1, "index": "a"}),
        (RERANK, {"query": "a", "documents": ["b", {"text": "c"}]}),
        (RERANK, {"query": "a", "texts": ["b"], "documents": None}),
        (RERANK, {"query": "a", "texts": ["b"], "documents": ["c"]}),
        (RERANK, {"query": "a"}),
        (RERANK, {"documents": ["b"]}),
        (RERANK, {"query": "a", "documents": []}),
        (RERANK, {"query": "a", "documents": [{}]}),
        (RERANK, {"query": "a", "texts": [{"text": "c"}]}),
        (RERANK, {"query": "a", "texts": ["b"], "model": None, "raw_scores": None, "user": 3}),
        (RERANK, {"query": "a", "texts": ["b"], "top_n": 0}),
        (RERANK, {"query": "a", "texts": ["b"], "truncation_direction": "Left"}),
        (RERANK, {"query": "a", "texts": ["b"], "truncation": True}),
        (RERANK, {"query": "a", "texts": ["b"], "truncation": "yes"}),
    ],
)
def test_a_body_is_taken_if_and_only_if_the_document_allows_it(app, path, body):
    document = ask(app, "GET", "/openapi.json").json()
    content = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]
    reply = ask(app, "POST", path, body)
    assert allows(content["schema"], body) == (reply.status == 200), reply.body
    assert allows(content["schema"], content["example"])


def test_the_document_names_no_address_but_versions_and_the_key_where_there_is_one(app):
    document = ask(app, "GET", "/openapi.json", headers=[("host", "localhost:8500")]).json()
    assert document["servers"] == [{"url": "/"}]
    assert "security" not in document
    version = document["paths"]["/v1/models/toy/versions/{version}:predict"]
    assert [one["name"] for one in version["parameters"]] == ["version"]
    assert {"401", "403", "404"} < version["post"]["responses"].keys()
    keyed = make_app({"toy": ToyModel()}, ServerConfig(api_key="secret"))
    headers = [("authorization", "Bearer secret")]
    document = ask(keyed, "GET", "/openapi.json", headers=headers).json()
    assert document["security"] == [{"key": []}]
    assert document["paths"]["/readyz"]["get"]["security"] == []


def test_the_list_says_what_each_model_can_be_asked(app):
    entries = ask(app, "GET", "/v1/models").json()["data"]
    assert {one["id"]: one["capabilities"] for one in entries} == {
        "toy": ["predict", "regress"],
        "vectors": ["predict", "embeddings"],
        "ranks": ["predict", "regress", "rerank"],
    }
    json.dumps(entries)
