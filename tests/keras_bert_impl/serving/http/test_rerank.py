"""Documents in order over HTTP: bodies as the clients of Cohere, Jina and TEI send them."""

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.answerer import Input, Prepared
from keras_bert_impl.serving.http.app import make_app
from keras_bert_impl.serving.http.config import ServerConfig
from keras_bert_impl.serving.http.openapi import openapi_document
from keras_bert_impl.serving.http.rest import IGNORED, _Reranking
from tests.support.asgi_client import ask
from tests.support.toy_answerer import ToyAnswerer, ToyModel, ToyVectors

DOCUMENTS = ["ab", "abcd", "", "abc"]


class Pairs(ToyAnswerer):
    """Gives each pair the number of the document's characters; reads ten of them."""

    def __init__(self, kind="number"):
        inputs = (Input("text_a"), Input("text_b"))
        super().__init__(signature="text_pair", kind=kind, inputs=inputs)

    def prepare(self, instances):
        if any(not isinstance(one["text_b"], str) for one in instances):
            raise UserError("instance 1: `text_b` is no text.")
        rows = super().prepare([{"text": one["text_b"] or " "} for one in instances]).rows
        state = [len(one["text_b"]) for one in instances]
        return Prepared(rows, state, [max(0, length - 10) for length in state])

    def finish(self, prepared, outputs):
        if self.kind == "number":
            return [{"score": float(length)} for length in prepared.state]
        shares = [0.1 * length for length in prepared.state]
        return [{"probabilities": [1 - x, x], "logits": [0.0, 5 * x]} for x in shares]


def reranker(activation="Identity"):
    return ToyModel({"text_pair": Pairs()}, {"activation": activation})


def app_of(**models):
    return make_app(models or {"ranks": reranker(), "vectors": ToyModel()}, ServerConfig())


def ordered(path, body, **models):
    reply = ask(app_of(**models), "POST", path, body)
    assert reply.status == 200, reply.json()
    return reply.json()


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank", "/rerank"])
def test_coheres_client(path):
    body = {"model": "ranks", "query": "q", "documents": DOCUMENTS, "top_n": 2}
    found = ordered(path, body)
    assert found["results"] == [
        {"index": 1, "relevance_score": 4.0},
        {"index": 3, "relevance_score": 3.0},
    ]


def test_jinas_client():
    body = {
        "model": "ranks",
        "query": "q",
        "documents": [{"text": text} for text in DOCUMENTS[:2]],
        "return_documents": True,
    }
    found = ordered("/v1/rerank", body)
    assert found["model"] == "ranks"
    assert found["usage"]["total_tokens"] == 6
    assert found["results"] == [
        {"index": 1, "relevance_score": 4.0, "document": {"text": "abcd"}},
        {"index": 0, "relevance_score": 2.0, "document": {"text": "ab"}},
    ]


def test_text_embeddings_inferences_client():
    body = {"query": "q", "texts": ["", "a"], "raw_scores": False, "return_text": True}
    body |= {"truncate": True, "truncation_direction": "Right"}
    sigmoid = reranker("Sigmoid")
    assert ordered("/rerank", body, ranks=sigmoid) == [
        {"index": 1, "score": pytest.approx(0.7310586), "text": "a"},
        {"index": 0, "score": 0.5, "text": ""},
    ]
    body = {"query": "q", "texts": ["", "a"], "raw_scores": True}
    assert [one["score"] for one in ordered("/rerank", body, ranks=sigmoid)] == [1.0, 0.0]


def test_of_labels_the_probability_of_one_is_the_score():
    labelled = ToyModel({"text_pair": Pairs("label")}, {"labels": ["no", "yes"]})
    body = {"query": "q", "documents": ["a", "ab"]}
    first = ordered("/rerank", body, ranks=labelled)["results"][0]
    assert first == {"index": 1, "relevance_score": pytest.approx(0.2)}
    first = ordered("/rerank", {**body, "positive_label": "no"}, ranks=labelled)["results"][0]
    assert first == {"index": 0, "relevance_score": pytest.approx(0.9)}


def test_what_clients_send_beside_and_nulls_change_nothing():
    body = {"query": "q", "documents": DOCUMENTS}
    beside = dict.fromkeys(IGNORED, 5) | dict.fromkeys(_Reranking.__annotations__)
    assert ordered("/rerank", {**beside, **body}) == ordered("/rerank", body)
    bare = {"query": "q", "texts": DOCUMENTS}
    assert ordered("/rerank", {**beside, **bare}) == ordered("/rerank", bare)


def test_a_number_of_which_no_activation_is_known_is_the_score():
    model = ToyModel({"text_pair": Pairs()})
    found = ordered("/rerank", {"query": "q", "texts": ["a", "abc"]}, ranks=model)
    assert [one["score"] for one in found] == [3.0, 1.0]


def test_a_model_with_an_unknown_activation_is_no_reranker():
    body = {"query": "q", "documents": ["a"]}
    reply = ask(app_of(one=reranker(), other=reranker("GELU")), "POST", "/rerank", body)
    assert reply.json()["model"] == "one"
    reply = ask(app_of(other=reranker("GELU")), "POST", "/rerank", body)
    assert (reply.status, reply.json()["error"][-10:]) == (404, "are: none.")
    assert "/rerank" not in openapi_document({"other": reranker("GELU")}, {})["paths"]


def test_what_was_cut_is_said_or_refused():
    body = {"query": "q", "documents": ["a", "b" * 12]}
    assert ordered("/rerank", body)["num_truncated"] == [0, 2]
    bare = {"query": "q", "texts": ["a", "b" * 12]}
    assert len(ordered("/rerank", bare)) == 2
    for name in ("truncate", "truncation"):
        reply = ask(app_of(), "POST", "/rerank", {**bare, name: False})
        assert reply.status == 400
        assert (
            f"longer than the model reads; shorten them, or leave `{name}` out."
            in (reply.json()["error"])
        )


def test_a_list_of_too_many_is_refused_before_each_is_looked_at(monkeypatch):
    monkeypatch.setattr("keras_bert_impl.serving.http.rest.typed", None)
    body = {"query": "q", "documents": [{"text": "a"}] * 2049}
    assert ask(app_of(), "POST", "/rerank", body).status == 413


@pytest.mark.parametrize(
    ("change", "status", "told"),
    [
        ({"query": 5}, 400, "query is 5"),
        ({"query": None}, 400, "with the entry query"),
        ({"documents": None}, 400, "either `documents` or `texts`"),
        ({"query": "a", "model": 5}, 400, "model is 5"),
        ({"documents": []}, 400, "send at least one"),
        ({"documents": "a text"}, 400, "documents is 'a text'"),
        ({"documents": [{"image": "x"}]}, 400, "documents"),
        ({"texts": ["a"]}, 400, "either `documents` or `texts`"),
        ({"top_n": 0}, 400, "top_n is 0"),
        ({"truncation_direction": "Left"}, 400, "truncation_direction"),
        ({"top": 5}, 400, "is not known here"),
        ({"positive_label": "yes"}, 400, "gives a number"),
        ({"model": "vectors"}, 404, "'vectors'; those that score pairs of texts here are: ranks."),
        ({"documents": ["a"] * 2049}, 413, "2048 instances"),
    ],
)
def test_what_is_no_such_request_is_told(change, status, told):
    reply = ask(app_of(), "POST", "/rerank", {"query": "q", "documents": ["a"], **change})
    assert reply.status == status
    assert told in reply.json()["error"]


def test_one_of_several_models_must_be_named():
    body = {"query": "q", "documents": ["a"]}
    reply = ask(app_of(one=reranker(), other=reranker()), "POST", "/v1/rerank", body)
    assert reply.status == 404
    assert reply.json()["error"]["message"].endswith("here are: one, other.")
    reply = ask(app_of(vectors=ToyModel({"embed": ToyVectors()})), "POST", "/v1/rerank", body)
    assert reply.json()["error"]["code"] == "model_not_found"


def test_openapi_has_the_paths_where_a_model_scores_pairs():
    paths = openapi_document({"ranks": reranker()}, {})["paths"]
    assert {"/rerank", "/v1/rerank", "/v2/rerank"} <= set(paths)
    assert "/rerank" not in openapi_document({"toy": ToyModel()}, {})["paths"]
