"""What these models can be asked, described in OpenAPI."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from keras_bert_impl.serving.answerer import Answerer, AnsweringModel, Input
from keras_bert_impl.serving.forms import VectorForm
from keras_bert_impl.serving.http import rest
from keras_bert_impl.serving.reranking import can_rank

_FAULTS = {
    "400": "The request is not as it must be; the sentence says what is wrong.",
    "401": "The API key is missing or wrong.",
    "403": "The server has no such name (Host), or a foreign page asks.",
    "404": "There is no such model, or no such version.",
    "408": "The body did not arrive in time.",
    "413": "The body, or the number of instances, is too large.",
    "415": "The body is packed, and not as gzip.",
    "429": "Too many wait, or this one waited too long; ask again after `Retry-After` seconds.",
    "503": "The server warms up, or stops.",
}
_HEALTH_FAULTS: dict[str, tuple[str, ...]] = {"/healthz": (), "/readyz": ("503",)}
_OF_ALL, _OF_MODELS = ("401", "403"), ("401", "403", "404")
_GETS = {
    "/v1/models": "The models, in OpenAI's form.",
    "/healthz": "Whether the server lives.",
    "/readyz": "Whether it takes requests.",
    "/metrics": "Figures for Prometheus, as text.",
}
_TEXT: dict[str, Any] = {"type": "string"}
_TEXT_OR_TEXTS = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}]}
_ID = {"X-Request-ID": {"schema": _TEXT, "description": "As it was sent, or else a new one."}}
_SAYING = "How do I get my money back?"
_EXAMPLES = {"fill_mask_text": "Paris is the [MASK] of France."}


def openapi_document(
    models: Mapping[str, AnsweringModel],
    indexes: Mapping[str, rest.ServedIndex] | None = None,
    has_key: bool = False,
) -> dict[str, Any]:
    """Describes what may be asked of these models, in OpenAPI 3.1."""
    paths = {path: {"get": _get(about)} for path, about in _GETS.items()}
    open_to_all: dict[str, Any] = {"security": []} if has_key else {}
    for path, faults in _HEALTH_FAULTS.items():
        paths[path] = {"get": {**_get(_GETS[path], faults), **open_to_all}}
    for name, model in models.items():
        paths |= _paths_of(name, model)
    if vectors := [name for name, model in models.items() if rest.vectors_of(model)]:
        schema = {
            "model": {"enum": vectors},
            "input": _TEXT_OR_TEXTS,
            "encoding_format": {"enum": ["float", "base64", None]},
            **_schema(VectorForm.options)["properties"],
            "user": _or_null(_TEXT),
        }
        post = {"model": vectors[0], "input": [_SAYING]}
        about = "Vectors of texts, in OpenAI's form."
        paths["/v1/embeddings"] = _post(about, _object(schema, ("model", "input")), post)
    if indexes:
        names = [*indexes, None] if len(indexes) == 1 else [*indexes]
        most = {"type": "integer", "minimum": 1, "maximum": rest.MOST_FOUND}
        top_k = {**_or_null(most), "default": 10}
        schema = {"query": _TEXT_OR_TEXTS, "top_k": top_k, "index": {"enum": names}}
        needed = ("query",) if len(indexes) == 1 else ("query", "index")
        asked = {"query": _SAYING, "index": min(indexes)}
        about = "The nearest texts of an index: id, score, text."
        paths["/search"] = _post(about, _object(schema, needed), asked)
    if rerankers := [name for name, model in models.items() if can_rank(model)]:
        post = {"model": rerankers[0], "query": _SAYING, "documents": [_SAYING]}
        about = "Documents in the order of their scores, in Cohere's, Jina's and TEI's form."
        paths |= dict.fromkeys(rest.RERANK_PATHS, _post(about, _reranking_schema(rerankers), post))
    return {
        "openapi": "3.1.0",
        "info": {"title": "keras_bert_impl", "version": "1"},
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        **({"security": [{"key": []}]} if has_key else {}),
    }


def _paths_of(name: str, model: AnsweringModel) -> dict[str, Any]:
    main = next(iter(model.answerers.values()))
    signatures = [f"{one} gives {', '.join(x.outputs)}" for one, x in model.answerers.items()]
    rows, columns = list[Any](), list[Any]()
    for one in model.answerers.values():
        row = _schema([*one.inputs, *one.options])
        is_bare = not any(x.needed for x in one.inputs[1:])
        rows.append(_list_of({"anyOf": [row, _type_of(one.inputs[0])]} if is_bare else row))
        fields = {field: _list_of(values) for field, values in row["properties"].items()}
        columns.append(_object(fields, row["required"]))
    schema = {
        "signature_name": {"enum": [*model.answerers, rest.DEFAULT_SIGNATURE, "", None]},
        "instances": {"anyOf": rows},
        "inputs": {"description": "The same by columns.", "anyOf": [*rows, *columns]},
        "encoding_format": {"enum": ["float", None, *(["base64"] * (main.kind == "vector"))]},
    }
    about, example = f"Answers: {'; '.join(signatures)}.", {"instances": [_example(main)]}
    asked = _object(schema, oneOf=[{"required": [one]} for one in rest.METHODS["predict"]])
    states = _get("The states of the model's versions, and its entry in the list.", _OF_MODELS)
    metadata = _get("Its signatures, and what there is to know of it.", _OF_MODELS)
    found = {"": {"get": states}, "/metadata": {"get": metadata}}
    found[":predict"] = _post(about, asked, example)
    features = _schema(main.inputs, of_features=True)
    whole = {"items": {"required": features.pop("required")}}
    schema = {
        "signature_name": schema["signature_name"],
        "examples": _list_of(features),
        "context": {**features, "description": "What all examples share."},
    }
    either = [{"required": ["context"]}, {"properties": {"examples": whole}}]
    asked, example = _object(schema, ("examples",), anyOf=either), {"examples": [_example(main)]}
    for method, about in (
        ("classify", "Labels with their probabilities."),
        ("regress", "Numbers."),
    ):
        if method in rest.capabilities_of(model):
            found[f":{method}"] = _post(about, asked, example)
    paths = dict[str, Any]()
    for which, given in (
        ("", []),
        ("/versions/{version}", ["version"]),
        ("/labels/{label}", ["label"]),
    ):
        in_path = [{"name": one, "in": "path", "required": True, "schema": _TEXT} for one in given]
        parameters = {"parameters": in_path} if in_path else {}
        for end, about_it in found.items():
            paths[f"/v1/models/{name}{which}{end}"] = {**about_it, **parameters}
    return paths


def _reranking_schema(models: Sequence[str]) -> dict[str, Any]:
    flag, document = _or_null({"type": "boolean"}), _object({"text": _TEXT}, ("text",))
    flags = ("return_documents", "return_text", "raw_scores", "truncate", "truncation")
    schema = {
        "model": {"enum": [*models, None] if len(models) == 1 else [*models]},
        "query": _TEXT,
        "documents": _or_null(_list_of({"anyOf": [_TEXT, document]})),
        "texts": {
            **_or_null(_list_of(_TEXT)),
            "description": "In place of `documents`: the reply is TEI's.",
        },
        "top_n": _or_null({"type": "integer", "minimum": 1}),
        **dict.fromkeys(flags, flag),
        "truncation_direction": {"enum": ["Right", "right", None]},
        "positive_label": {**_or_null(_TEXT), "description": "Its probability is the score."},
        **{entry: {"description": "It is ignored."} for entry in rest.IGNORED},
    }
    needed = ("query",) if len(models) == 1 else ("query", "model")
    # null is as if an entry were not there.
    one_of = [
        {"required": [one], "properties": {one: {"type": "array"}, other: {"type": "null"}}}
        for one, other in (("documents", "texts"), ("texts", "documents"))
    ]
    return _object(schema, needed, oneOf=one_of)


def _get(summary: str, faults: Sequence[str] = _OF_ALL) -> dict[str, Any]:
    return {"summary": summary, "responses": _responses({"200": "It."}, faults)}


def _responses(about: Mapping[str, str], faults: Iterable[str]) -> dict[str, Any]:
    told = {**about, **{status: _FAULTS[status] for status in faults}}
    return {status: {"description": text, "headers": _ID} for status, text in told.items()}


def _post(summary: str, schema: dict[str, Any], example: Any) -> dict[str, Any]:
    content = {"application/json": {"schema": schema, "example": example}}
    return {
        "post": {
            "summary": summary,
            "requestBody": {"required": True, "content": content},
            "responses": _responses({"200": "Answers, as JSON."}, _FAULTS),
        }
    }


def _object(
    properties: Mapping[str, Any], required: Sequence[str] = (), **more: Any
) -> dict[str, Any]:
    known = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**known, "required": [*required], **more}


def _list_of(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": 1}


def _or_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def _schema(inputs: Sequence[Input], of_features: bool = False) -> dict[str, Any]:
    fields = {one.name: {**_type_of(one, of_features), "description": one.about} for one in inputs}
    return _object(fields, [one.name for one in inputs if one.needed])


def _type_of(field: Input, of_features: bool = False) -> dict[str, Any]:
    text: dict[str, Any] = {"anyOf": [_TEXT, _object({rest.B64: _TEXT}, (rest.B64,))]}
    if field.is_number:
        found: dict[str, Any] = {"type": "integer"}
    elif field.is_list:
        found = {"type": "array", "items": text}
    elif of_features:
        found = {"anyOf": [text, {"type": "array", "items": text, "minItems": 1, "maxItems": 1}]}
    else:
        found = text
    return found if field.needed else _or_null(found)


def _example(answerer: Answerer) -> dict[str, Any]:
    text = _EXAMPLES.get(answerer.signature, _SAYING)
    needed = [one for one in answerer.inputs if one.needed]
    return {one.name: [text, text] if one.is_list else text for one in needed}
