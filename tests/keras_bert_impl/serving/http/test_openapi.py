import json

from keras_bert_impl.serving.http.openapi import openapi_document, openapi_page
from tests.support.toy_answerer import ToyModel


def test_the_document_describes_the_paths_of_each_model():
    document = openapi_document({"toy": ToyModel()})
    assert document["openapi"] == "3.1.0"
    assert {"/v1/models/toy", "/v1/models/toy:predict", "/v1/models/toy:regress"} <= set(
        document["paths"]
    )
    assert "/v1/embeddings" not in document["paths"]
    json.dumps(document)


def test_the_page_shows_every_path_and_fetches_nothing():
    document = openapi_document({"toy": ToyModel()})
    page = openapi_page(document)
    for path in document["paths"]:
        assert path in page
    assert "<script" not in page
    assert "src=" not in page
    assert page.count("http") == page.count("http://127.0.0.1")


def test_what_a_model_says_of_itself_is_text_in_the_page():
    model = ToyModel()
    model.answerers["text"].outputs = {"score": "<script>alert(1)</script>"}
    page = openapi_page(openapi_document({"toy": model}))
    assert "<script" not in page
