import base64
from types import SimpleNamespace

import numpy as np
import pytest

from keras_bert_impl.serving.answerer import Input
from keras_bert_impl.serving.forms import VectorForm
from keras_bert_impl.serving.http import rest as form
from keras_bert_impl.serving.http.bodies import RequestError
from keras_bert_impl.serving.http.waiting import Answered
from tests.support.toy_answerer import ToyAnswerer, ToyModel

VECTORS = SimpleNamespace(
    inputs=[Input("text")], options=VectorForm.options, outputs={"embedding": ""}, kind="vector"
)
MODELS = {
    "vectors": SimpleNamespace(answerers={"text": ToyAnswerer(), "embed": VECTORS}),
    "toy": ToyModel(),
}


def read(**body):
    return form.read_embeddings(MODELS, {"model": "vectors", "input": "a", **body})


def test_a_model_is_found_by_its_name():
    name, asked = read()
    assert (name, asked.answerer) == ("vectors", VECTORS)


@pytest.mark.parametrize(
    ("body", "status"),
    [([], 400), ({}, 400), ({"model": 3}, 400), ({"model": "x"}, 404), ({"model": "toy"}, 404)],
)
def test_what_names_no_model_of_vectors_is_refused(body, status):
    with pytest.raises(RequestError) as refused:
        form.read_embeddings(MODELS, body)
    assert refused.value.status_code == status


@pytest.mark.parametrize("given", ["a", ["a"]])
def test_one_text_may_stand_bare(given):
    nothing = {"input_type": None, "dimensions": None, "vector_type": None}
    assert read(input=given)[1].instances == [{"text": "a", **nothing}]
    some = {"input_type": "query", "dimensions": 3, "vector_type": "ubinary"}
    assert read(input=given, **some)[1].instances == [{"text": "a", **some}]


@pytest.mark.parametrize(
    ("more", "entry"),
    [
        ({"input": []}, "input"),
        ({"input": None}, "input"),
        ({"input": [1, 2]}, "input"),
        ({"input": [[1, 2]]}, "input"),
        ({"input": ["a", None]}, "input"),
        ({"input": {"a": 1}}, "input"),
        ({"input": "a", "encoding_format": "int8"}, "encoding_format"),
        ({"input": "a", "encoding_format": ["float"]}, "encoding_format"),
        ({"input": "a", "dimensions": "3"}, "dimensions"),
        ({"input": "a", "dimensions": True}, "dimensions"),
        ({"input": "a", "user": {}}, "user"),
        ({"input": "a", "input_type": 1}, "input_type"),
        ({"input": "a", "more": 1}, "more"),
    ],
)
def test_a_wrong_entry_is_named(more, entry):
    with pytest.raises(RequestError) as refused:
        read(**more)
    assert (refused.value.status_code, refused.value.parameter) == (400, entry)


def test_ids_of_tokens_are_told_apart():
    with pytest.raises(RequestError, match="ids of tokens are not taken"):
        read(input=[1, 2])


def test_too_many_texts_are_refused_before_each_is_looked_at():
    with pytest.raises(RequestError) as refused:
        read(input=[1] * 2049)
    assert refused.value.status_code == 413


@pytest.mark.parametrize("encoding", ["float", "base64", None])
def test_vectors_stand_in_their_order_in_either_form(encoding):
    _, asked = read(input=["a", "b"], encoding_format=encoding)
    answers = [{"embedding": [0.5, 1.0]}, {"embedding": [0.25, 2.0]}]
    body = asked.write(Answered(answers, tokens=7))
    assert body["usage"] == {"prompt_tokens": 7, "total_tokens": 7}
    assert [one["index"] for one in body["data"]] == [0, 1]
    vectors = [one["embedding"] for one in body["data"]]
    if encoding == "base64":
        vectors = [np.frombuffer(base64.b64decode(one), "<f4").tolist() for one in vectors]
    assert vectors == [[0.5, 1.0], [0.25, 2.0]]
