"""OpenAI's form of embeddings: what `/v1/embeddings` and `/v1/models` get and give."""

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_bert_impl.errors import shown
from keras_bert_impl.serving.answerer import Answerer, AnsweringModel
from keras_bert_impl.serving.http.batching import Answered
from keras_bert_impl.serving.http.bodies import RequestError, bad_request
from keras_bert_impl.serving.http.tensorflow_serving import Asked

_ENTRIES = {"input", "model", "encoding_format", "dimensions", "user"}


def vectors_of(model: AnsweringModel) -> Answerer | None:
    """The answerer of a model that gives vectors; None where it gives none."""
    return next((one for one in model.answerers.values() if one.kind == "vector"), None)


def read(models: Mapping[str, AnsweringModel], body: Any) -> tuple[str, Asked]:
    """Reads what `/v1/embeddings` got: the model's name, and what it is asked."""
    if not isinstance(body, dict):
        raise bad_request('send a JSON object such as {"model": "…", "input": "a text"}.')
    if unknown := body.keys() - _ENTRIES:
        raise bad_request(f"{shown(min(unknown))} is not known here; leave it out.", min(unknown))
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
    form, dimensions = body.get("encoding_format") or "float", body.get("dimensions")
    if form not in ("float", "base64"):
        raise bad_request(
            f"`encoding_format` is {shown(form)}; choose float or base64.", "encoding_format"
        )
    if dimensions is not None and type(dimensions) is not int:
        raise bad_request("`dimensions` must be a whole number.", "dimensions")
    if not isinstance(body.get("user"), str | None):
        raise bad_request("`user` must be a text.", "user")
    field, output = answerer.inputs[0].name, next(iter(answerer.outputs))
    instances = [{field: text} for text in _texts(body.get("input"))]

    def write(answered: Answered) -> dict[str, Any]:
        vectors = [one[output] for one in answered.answers]
        if dimensions not in (None, len(vectors[0])):
            raise bad_request(
                f"`dimensions` is {shown(dimensions)}, but the vectors of {shown(name)} have "
                f"{len(vectors[0])} numbers; leave it out.",
                "dimensions",
            )
        written = [_packed(one) for one in vectors] if form == "base64" else vectors
        return {
            "object": "list",
            "data": [
                {"object": "embedding", "index": index, "embedding": vector}
                for index, vector in enumerate(written)
            ],
            "model": name,
            "usage": {"prompt_tokens": answered.tokens, "total_tokens": answered.tokens},
        }

    return name, Asked(answerer, instances, write)


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


def _packed(vector: Any) -> str:
    return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()


def model_entry(name: str, created: int) -> dict[str, Any]:
    """A model as OpenAI's list has it.

    Args:
        created: seconds since 1970.

    Example:
        >>> model_entry("minilm", 0)["id"]
        'minilm'
    """
    return {"id": name, "object": "model", "created": created, "owned_by": "keras_bert_impl"}
