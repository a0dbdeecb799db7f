"""OpenAI's form of embeddings: what `/v1/embeddings` and `/v1/models` get and give."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_bert_impl.errors import shown
from keras_bert_impl.serving.answerer import Answer, Answerer, AnsweringModel, Instance
from keras_bert_impl.serving.http.faults import RequestError, bad_request

_ENTRIES = {"input", "model", "encoding_format", "dimensions", "user"}
_FORMATS = ("float", "base64")


class EmbeddingsRequest(NamedTuple):
    """What a request asks.

    Attributes:
        texts: to embed.
        base64: whether vectors are given as base64 of little-endian float32.
        dimensions: how many numbers a vector is expected to have; None for whatever it has.
    """

    texts: list[str]
    base64: bool
    dimensions: int | None


def vectors_of(model: AnsweringModel) -> Answerer | None:
    """The answerer of a model that gives vectors; None where it gives none."""
    return next((one for one in model.answerers.values() if one.kind == "vector"), None)


def embedding_model(models: Mapping[str, AnsweringModel], body: Any) -> tuple[str, Answerer]:
    """The model that a request names, and who gives its vectors."""
    if not isinstance(body, dict):
        raise bad_request('send a JSON object such as {"model": "…", "input": "a text"}.')
    name = body.get("model")
    if not isinstance(name, str):
        raise bad_request("`model` must name a model; /v1/models lists them.", "model")
    answerer = vectors_of(models[name]) if name in models else None
    if answerer is None:
        raise RequestError(
            404,
            f"no model {shown(name)} gives vectors here; /v1/models lists those that do.",
            code="model_not_found",
            parameter="model",
        )
    return name, answerer


def read_embeddings(body: Mapping[str, Any]) -> EmbeddingsRequest:
    """Reads what `/v1/embeddings` got.

    Example:
        >>> read_embeddings({"model": "m", "input": "a text"})
        EmbeddingsRequest(texts=['a text'], base64=False, dimensions=None)
    """
    if unknown := body.keys() - _ENTRIES:
        raise bad_request(f"{shown(min(unknown))} is not known here; leave it out.", min(unknown))
    form = body.get("encoding_format") or "float"
    if form not in _FORMATS:
        raise bad_request(
            f"`encoding_format` is {shown(form)}; choose float or base64.", "encoding_format"
        )
    dimensions = body.get("dimensions")
    if dimensions is not None and type(dimensions) is not int:
        raise bad_request("`dimensions` must be a whole number.", "dimensions")
    if not isinstance(body.get("user"), str | None):
        raise bad_request("`user` must be a text.", "user")
    return EmbeddingsRequest(_texts(body.get("input")), form == "base64", dimensions)


def _texts(given: Any) -> list[str]:
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts:
        raise bad_request("`input` must be a text or a list of texts.", "input")
    for at, text in enumerate(texts, start=1):
        if type(text) is not str:
            ids = type(text) is int or isinstance(text, list)
            what = "ids of tokens are not taken" if ids else f"text {at} is {shown(text)}"
            raise bad_request(f"`input`: {what}; send texts.", "input")
    return texts


def instances_of_texts(answerer: Answerer, texts: Sequence[str]) -> list[Instance]:
    """Texts as the answerer takes them."""
    name = answerer.inputs[0].name
    return [{name: text} for text in texts]


def embeddings_body(
    name: str,
    answerer: Answerer,
    request: EmbeddingsRequest,
    answers: Sequence[Answer],
    tokens: int,
) -> dict[str, Any]:
    """What `/v1/embeddings` gives."""
    output = next(iter(answerer.outputs))
    vectors = [one[output] for one in answers]
    width = len(vectors[0])
    if request.dimensions not in (None, width):
        raise bad_request(
            f"`dimensions` is {shown(request.dimensions)}, but the vectors of {shown(name)} have "
            f"{width} numbers; leave it out.",
            "dimensions",
        )
    return {
        "object": "list",
        "data": [
            {
                "object": "embedding",
                "index": index,
                "embedding": _packed(vector) if request.base64 else vector,
            }
            for index, vector in enumerate(vectors)
        ],
        "model": name,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _packed(vector: Sequence[float]) -> str:
    return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()


def models_body(models: Mapping[str, AnsweringModel], created: int) -> dict[str, Any]:
    """What `/v1/models` gives: in OpenAI's form.

    Args:
        created: seconds since 1970.
    """
    return {"object": "list", "data": [model_entry(name, created) for name in models]}


def model_entry(name: str, created: int) -> dict[str, Any]:
    """A model as OpenAI's list has it.

    Example:
        >>> model_entry("minilm", 0)["id"]
        'minilm'
    """
    return {"id": name, "object": "model", "created": created, "owned_by": "keras_bert_impl"}
