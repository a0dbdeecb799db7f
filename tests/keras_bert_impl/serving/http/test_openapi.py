import json

from keras_bert_impl.serving.http.openapi import openapi_document
from tests.support.toy_answerer import ToyModel


def test_the_document_describes_the_paths_of_each_model():
    document = openapi_document({"toy": ToyModel()})
    assert document["openapi"] == "3.1.0"
    assert {"/v1/models/toy", "/v1/models/toy:predict", "/v1/models/toy:regress"} <= set(
        document["paths"]
    )
    assert "/v1/embeddings" not in document["paths"]
    json.dumps(document)
