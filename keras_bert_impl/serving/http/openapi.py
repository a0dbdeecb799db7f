"""The OpenAPI document of a server's own models."""

from collections.abc import Mapping, Sequence
from typing import Any

from keras_bert_impl.serving.answerer import Answerer, AnsweringModel, Input
from keras_bert_impl.serving.http.embeddings import vectors_of

_FAULTS = {
    "400": "The request is not as it must be; the sentence says what is wrong.",
    "401": "The API key is missing or wrong.",
    "404": "There is no such model, or no such version.",
    "408": "The body did not arrive in time.",
    "413": "The body, or the number of instances, is too large.",
    "429": "Too many wait, or this one waited too long; ask again after `Retry-After` seconds.",
    "503": "The server is about to stop.",
}
_EXAMPLES = {"fill_mask_text": "Paris is the [MASK] of France."}


def openapi_document(models: Mapping[str, AnsweringModel]) -> dict[str, Any]:
    """Describes what may be asked of these models, in OpenAPI 3.1."""
    paths: dict[str, Any] = {}
    for name, model in models.items():
        paths.update(_paths_of(name, model))
    vectors = [name for name, model in models.items() if vectors_of(model)]
    if vectors:
        paths["/v1/embeddings"] = {"post": _embeddings(vectors)}
    paths["/v1/models"] = {"get": _get("The models, in OpenAI's form.")}
    paths["/healthz"] = {"get": _get("Whether the server lives.")}
    paths["/readyz"] = {"get": _get("Whether it takes requests; 503 while it stops.")}
    paths["/metrics"] = {"get": _get("Figures for Prometheus.", "text/plain")}
    return {
        "openapi": "3.1.0",
        "info": {"title": "keras_bert_impl", "version": "1"},
        "paths": paths,
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


def _paths_of(name: str, model: AnsweringModel) -> dict[str, Any]:
    path = f"/v1/models/{name}"
    main = next(iter(model.answerers.values()))
    paths = {
        path: {"get": _get("Whether the model can be asked, as TensorFlow Serving says it.")},
        f"{path}/metadata": {"get": _get("Its signatures, and what there is to know of it.")},
        f"{path}:predict": {"post": _predict(model)},
    }
    if main.kind in ("label", "labels"):
        paths[f"{path}:classify"] = {"post": _examples(main, "Labels with their probabilities.")}
    if main.kind == "number":
        paths[f"{path}:regress"] = {"post": _examples(main, "Numbers.")}
    return paths


def _get(summary: str, kind: str = "application/json") -> dict[str, Any]:
    return {"summary": summary, "responses": {"200": {"description": "It.", "content": {kind: {}}}}}


def _post(summary: str, schema: Any, example: Any) -> dict[str, Any]:
    content = {"application/json": {"schema": schema, "example": example}}
    faults = {status: {"description": about} for status, about in _FAULTS.items()}
    answers = {"200": {"description": "Answers.", "content": {"application/json": {}}}, **faults}
    return {
        "summary": summary,
        "requestBody": {"required": True, "content": content},
        "responses": answers,
    }


def _predict(model: AnsweringModel) -> dict[str, Any]:
    answerers = list(model.answerers.values())
    instances = [_instance(answerer.inputs) for answerer in answerers]
    schema = _object(
        {
            "signature_name": {"enum": list(model.answerers)},
            "instances": {"type": "array", "items": {"anyOf": instances}, "minItems": 1},
            "inputs": {"type": "object", "description": "The same by columns, or this."},
        }
    )
    outputs = "; ".join(map(_outputs, answerers))
    return _post(f"Answers: {outputs}.", schema, {"instances": [_example(answerers[0])]})


def _outputs(answerer: Answerer) -> str:
    fields = ", ".join(f"{name} ({about})" for name, about in answerer.outputs.items())
    return f"{answerer.signature} gives {fields}"


def _examples(answerer: Answerer, summary: str) -> dict[str, Any]:
    instance = _instance(answerer.inputs)
    schema = _object({"examples": {"type": "array", "items": instance}, "context": instance})
    return _post(summary, schema, {"examples": [_example(answerer)]})


def _embeddings(models: Sequence[str]) -> dict[str, Any]:
    text = {"type": "string"}
    schema = _object(
        {
            "model": {"enum": list(models)},
            "input": {"anyOf": [text, {"type": "array", "items": text, "minItems": 1}]},
            "encoding_format": {"enum": ["float", "base64"]},
            "dimensions": {"type": "integer", "description": "Only the model's own number."},
            "user": text,
        }
    )
    example = {"model": models[0], "input": ["How do I get my money back?"]}
    return _post("Vectors of texts, in OpenAI's form.", schema, example)


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _instance(inputs: Sequence[Input]) -> dict[str, Any]:
    text = {"anyOf": [{"type": "string"}, _object({"b64": {"type": "string"}})]}
    fields = {
        one.name: {**({"type": "array", "items": text} if one.is_list else text)}
        | {"description": one.about}
        for one in inputs
    }
    return {**_object(fields), "required": [one.name for one in inputs if one.needed]}


def _example(answerer: Answerer) -> dict[str, Any]:
    text = _EXAMPLES.get(answerer.signature, "How do I get my money back?")
    needed = [one for one in answerer.inputs if one.needed]
    return {one.name: [text, text] if one.is_list else text for one in needed}
