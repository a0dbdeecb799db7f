"""TensorFlow Serving's REST form: predict, classify, regress, status and metadata.

Its documented calls work unchanged. What a text is may be written as {"b64": "..."}, too; an
instance with one field may stand as its bare value, and so may answers with one.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.serving.answerer import Answer, Answerer, AnsweringModel, Input, Instance
from keras_bert_impl.serving.forms import read_fields
from keras_bert_impl.serving.http.batching import Answered
from keras_bert_impl.serving.http.bodies import RequestError, bad_request

DEFAULT_SIGNATURE = "serving_default"
VERSION = "1"
"""The one version of each model: a server opens a model once."""

METHODS = {
    "predict": ("instances", "inputs"),
    "classify": ("examples", "context"),
    "regress": ("examples", "context"),
}
"""What each method takes beside `signature_name`."""

_B64 = "b64"
_Write = Callable[[Answered], dict[str, Any]]


class Asked(NamedTuple):
    """What a request asks.

    Attributes:
        instances: texts by field.
        write: makes the body of the reply.
    """

    answerer: Answerer
    instances: Sequence[Instance]
    write: _Write


def read(model: AnsweringModel, method: str, body: Any) -> Asked:
    """Reads what a method of a model got.

    Example:
        >>> from types import SimpleNamespace
        >>> asked = SimpleNamespace(inputs=[Input("text")], outputs={"score": "a number"})
        >>> model = SimpleNamespace(answerers={"text": asked})
        >>> found = read(model, "predict", {"inputs": {"text": ["a", "b"]}})
        >>> found.instances, found.write(Answered([{"score": 1.0}, {"score": 2.0}], 2))
        ([{'text': 'a'}, {'text': 'b'}], {'outputs': [1.0, 2.0]})
    """
    answerer = answerer_of(model, body)
    if unknown := body.keys() - {*METHODS[method], "signature_name"}:
        raise bad_request(
            f"{shown(min(unknown))} is not known here; send {' or '.join(METHODS[method])}, and "
            "`signature_name` where it is needed."
        )
    if method == "predict":
        rows, write = _read_predict(answerer, body)
    else:
        rows, write = _examples(answerer, body), _writer(model, answerer, method)
    if not isinstance(rows, list) or not rows:
        raise bad_request("send a list with at least one instance.")
    instances = [_instance(answerer.inputs, row) for row in rows]
    try:
        read_fields(answerer.inputs, instances)
    except UserError as error:
        raise bad_request(str(error)) from None
    return Asked(answerer, instances, write)


def answerer_of(model: AnsweringModel, body: Any) -> Answerer:
    """The answerer that a request's `signature_name` names.

    By default the one that takes what the first instance has, else the first: a model may take
    texts and pairs of them.
    """
    if not isinstance(body, dict):
        raise bad_request('send a JSON object such as {"instances": ["a text"]}.')
    name = body.get("signature_name", "")
    if isinstance(name, str) and name in model.answerers:
        return model.answerers[name]
    if name in ("", None, DEFAULT_SIGNATURE):
        first, given = next(iter(model.answerers.values())), _names_in(body)
        takes = (one for one in model.answerers.values() if given == {x.name for x in one.inputs})
        return next(takes, first)
    raise bad_request(
        f"`signature_name` is {shown(name)}; the model has {', '.join(model.answerers)}."
    )


def _names_in(body: Mapping[str, Any]) -> set[str]:
    """The inputs that a request names, by its first instance."""
    columns, context = body.get("inputs"), body.get("context")
    rows = body.get("instances", body.get("examples"))
    first = rows[0] if isinstance(rows, list) and rows else columns
    return {name for one in (first, context) if isinstance(one, dict) for name in one}


def _read_predict(answerer: Answerer, body: Mapping[str, Any]) -> tuple[Any, _Write]:
    if ("instances" in body) == ("inputs" in body):
        raise bad_request("send either `instances` (rows) or `inputs` (columns).")
    names = list(answerer.outputs)
    if "instances" in body:
        is_bare = len(names) == 1
        return body["instances"], lambda answered: {
            "predictions": [one[names[0]] if is_bare else one for one in answered.answers]
        }

    def by_columns(answered: Answered) -> dict[str, Any]:
        columns = {name: [one.get(name) for one in answered.answers] for name in names}
        return {"outputs": columns[names[0]] if len(names) == 1 else columns}

    return _rows(answerer.inputs, body["inputs"]), by_columns


def _rows(inputs: Sequence[Input], columns: Any) -> list[dict[str, Any]]:
    if not isinstance(columns, dict) or columns.keys() == {_B64}:
        columns = {inputs[0].name: columns}
    for name, column in columns.items():
        if not isinstance(column, list) or not column:
            raise bad_request(f"`inputs`: {shown(name)} must be a list with at least one value.")
    counts = {name: len(column) for name, column in columns.items()}
    if len(set(counts.values())) > 1:
        raise bad_request(f"`inputs`: the columns differ in their lengths ({shown(counts)}).")
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _examples(answerer: Answerer, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of `examples`, which may share a `context`; a feature may be a list of one value."""
    examples, context = body.get("examples"), body.get("context", {})
    if not isinstance(examples, list) or not all(
        isinstance(one, dict) for one in (context, *examples)
    ):
        raise bad_request("send `examples`, a list of objects, and perhaps `context`, an object.")
    lists = {one.name for one in answerer.inputs if one.is_list}
    return [
        {
            name: value[0] if _is_single(value) and name not in lists else value
            for name, value in {**context, **example}.items()
        }
        for example in examples
    ]


def _is_single(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 1


def _instance(inputs: Sequence[Input], row: Any) -> Instance:
    values = row if isinstance(row, dict) and row.keys() != {_B64} else {inputs[0].name: row}
    return {
        name: [*map(_text, value)] if isinstance(value, list) else _text(value)
        for name, value in values.items()
    }


def _text(value: Any) -> Any:
    if not isinstance(value, dict) or value.keys() != {_B64}:
        return value
    try:
        return base64.b64decode(value[_B64], validate=True).decode()
    except (TypeError, ValueError):
        raise bad_request(f"{shown(value[_B64])} is no UTF-8 text in base64.") from None


def _writer(model: AnsweringModel, answerer: Answerer, method: str) -> _Write:
    """Writes labels with their probabilities, or numbers."""
    wanted = "labels" if method == "classify" else "numbers"
    if answerer.kind not in (wanted, wanted.rstrip("s")):
        kind = answerer.kind.replace("_", " ")
        raise bad_request(f"the model answers with {kind} and not with {wanted}; use :predict.")
    if method == "regress":
        return lambda answered: {"result": [one["score"] for one in answered.answers]}
    labels = model.description.get("labels")
    if not labels:
        raise bad_request("the model's labels have no names here; use :predict.")
    return lambda answered: {"result": [_pairs(labels, one) for one in answered.answers]}


def _pairs(labels: Sequence[str], answer: Answer) -> list[list[Any]]:
    return [list(pair) for pair in zip(labels, answer["probabilities"], strict=True)]


def check_version(name: str, version: str | None, label: str | None) -> None:
    """Holds the version, or the label of one, that a path names against the one that there is."""
    if label is not None or version not in (None, VERSION):
        which = f"version {shown(version)}" if label is None else f"label {shown(label)}"
        raise RequestError(404, f"{shown(name)} has no {which}, only version {VERSION}.")


def status_body() -> dict[str, Any]:
    """What the path of a model gives: that it can be asked."""
    status = {"error_code": "OK", "error_message": ""}
    return {"model_version_status": [{"version": VERSION, "state": "AVAILABLE", "status": status}]}


def metadata_body(name: str, model: AnsweringModel) -> dict[str, Any]:
    """What `/metadata` gives: the signatures, and beside them what people want to know."""
    signatures = {one: _signature(answerer) for one, answerer in model.answerers.items()}
    default = next(iter(signatures.values()))
    return {
        "model_spec": {"name": name, "signature_name": "", "version": VERSION},
        "metadata": {
            "signature_def": {"signature_def": {DEFAULT_SIGNATURE: default, **signatures}},
            "description": dict(model.description),
        },
    }


def _signature(answerer: Answerer) -> dict[str, Any]:
    inputs = {}
    for one in answerer.inputs:
        shape = {"dim": [{"size": "-1", "name": ""}] * (1 + one.is_list), "unknown_rank": False}
        inputs[one.name] = {"dtype": "DT_STRING", "tensor_shape": shape, "name": f"{one.name}:0"}
    # Unpadded answers have no one shape; what they are is said in words.
    any_shape = {"dim": [], "unknown_rank": True}
    outputs = {
        name: {
            "dtype": "DT_INVALID",
            "tensor_shape": any_shape,
            "name": f"{name}:0",
            "about": about,
        }
        for name, about in answerer.outputs.items()
    }
    return {"inputs": inputs, "outputs": outputs, "method_name": "tensorflow/serving/predict"}
