"""TensorFlow Serving's REST form: predict, classify, regress, status and metadata.

Its documented calls work unchanged. What a text is may be written as {"b64": "..."}, too; an
instance with one field may stand as its bare value, and so may answers with one.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from keras_bert_impl.errors import shown
from keras_bert_impl.serving.answerer import Answer, Answerer, AnsweringModel, Input, Instance
from keras_bert_impl.serving.http.faults import RequestError, bad_request

DEFAULT_SIGNATURE = "serving_default"
VERSION = "1"
"""The one version of each model: a server opens a model once."""

_B64 = "b64"


class Asked(NamedTuple):
    """What a request asks.

    Attributes:
        instances: texts by field.
        by_columns: whether it was written by columns, and so is its answer.
    """

    instances: list[Instance]
    by_columns: bool = False


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
        fitting = (one for one in model.answerers.values() if _takes(one, given))
        return next(fitting, first)
    raise bad_request(
        f"`signature_name` is {shown(name)}; the model has {', '.join(model.answerers)}."
    )


def _names_in(body: Mapping[str, Any]) -> set[str]:
    """The inputs that a request names, by its first instance."""
    columns, context = body.get("inputs"), body.get("context")
    rows = body.get("instances", body.get("examples"))
    first = rows[0] if isinstance(rows, list) and rows else columns
    return {name for one in (first, context) if isinstance(one, dict) for name in one}


def _takes(answerer: Answerer, names: set[str]) -> bool:
    return names == {one.name for one in answerer.inputs}


def read_predict(answerer: Answerer, body: Mapping[str, Any]) -> Asked:
    """Reads what `:predict` got.

    Example:
        >>> from types import SimpleNamespace
        >>> asked = SimpleNamespace(inputs=[Input("text")])
        >>> read_predict(asked, {"instances": ["a", {"text": "b"}]}).instances
        [{'text': 'a'}, {'text': 'b'}]
        >>> read_predict(asked, {"inputs": {"text": ["a", "b"]}})
        Asked(instances=[{'text': 'a'}, {'text': 'b'}], by_columns=True)
    """
    if unknown := body.keys() - {"instances", "inputs", "signature_name"}:
        raise bad_request(
            f"{shown(min(unknown))} is not known here; send `instances` or `inputs`, and "
            "`signature_name` where it is needed."
        )
    if ("instances" in body) == ("inputs" in body):
        raise bad_request("send either `instances` (rows) or `inputs` (columns).")
    if "inputs" in body:
        return Asked(_of_columns(answerer.inputs, body["inputs"]), by_columns=True)
    rows = body["instances"]
    if not isinstance(rows, list) or not rows:
        raise bad_request("`instances` must be a list with at least one instance.")
    return Asked([_instance(answerer.inputs, row, at) for at, row in enumerate(rows, start=1)])


def read_examples(answerer: Answerer, body: Mapping[str, Any]) -> Asked:
    """Reads what `:classify` or `:regress` got: `examples`, which may share a `context`.

    Example:
        >>> from types import SimpleNamespace
        >>> asked = SimpleNamespace(inputs=[Input("text_a"), Input("text_b")])
        >>> body = {"context": {"text_a": "a"}, "examples": [{"text_b": "b"}, {"text_b": ["c"]}]}
        >>> read_examples(asked, body).instances
        [{'text_a': 'a', 'text_b': 'b'}, {'text_a': 'a', 'text_b': 'c'}]
    """
    if unknown := body.keys() - {"examples", "context", "signature_name"}:
        raise bad_request(f"{shown(min(unknown))} is not known here; send `examples`.")
    examples, context = body.get("examples"), body.get("context", {})
    if not isinstance(examples, list) or not examples or not isinstance(context, dict):
        raise bad_request("send `examples`, a list of objects, and perhaps `context`, an object.")
    lists = {one.name for one in answerer.inputs if one.is_list}
    instances = list[Instance]()
    for at, example in enumerate(examples, start=1):
        if not isinstance(example, dict):
            raise bad_request(f"example {at} is {shown(example)}; it must be an object.")
        # A feature is a list of values; most have one.
        values = {
            name: value[0] if _is_single(value) and name not in lists else value
            for name, value in {**context, **example}.items()
        }
        instances.append(_instance(answerer.inputs, values, at))
    return Asked(instances)


def _is_single(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 1


def _of_columns(inputs: Sequence[Input], columns: Any) -> list[Instance]:
    if not isinstance(columns, dict) or columns.keys() == {_B64}:
        columns = {inputs[0].name: columns}
    _check_names(inputs, columns, "`inputs`")
    for name, column in columns.items():
        if not isinstance(column, list) or not column:
            raise bad_request(f"`inputs`: {shown(name)} must be a list with at least one value.")
    counts = {name: len(column) for name, column in columns.items()}
    if len(set(counts.values())) > 1:
        raise bad_request(f"`inputs`: the columns differ in their lengths ({shown(counts)}).")
    rows = zip(*columns.values(), strict=True)
    return [
        _instance(inputs, dict(zip(columns, row, strict=True)), at)
        for at, row in enumerate(rows, start=1)
    ]


def _instance(inputs: Sequence[Input], row: Any, at: int) -> Instance:
    if type(row) is str:
        values: dict[str, Any] = {inputs[0].name: row}
    elif isinstance(row, dict) and row.keys() != {_B64}:
        values = row
    else:
        values = {inputs[0].name: row}
    _check_names(inputs, values, f"instance {at}")
    kinds = {one.name: one.is_list for one in inputs}
    return {name: _value(value, kinds[name], name, at) for name, value in values.items()}


def _check_names(inputs: Sequence[Input], values: Mapping[str, Any], where: str) -> None:
    known = [one.name for one in inputs]
    for name in values:
        if name not in known:
            may = ", ".join(known)
            raise bad_request(f"{where}: {shown(name)} is no input; it may have {may}.")
    for one in inputs:
        if one.needed and one.name not in values:
            raise bad_request(f"{where}: has no {one.name}; give one.")


def _value(value: Any, is_list: bool, name: str, at: int) -> Any:
    if type(value) is str and not is_list:
        return value
    if is_list and isinstance(value, list) and value:
        return [_value(one, False, name, at) for one in value]
    if not is_list and isinstance(value, dict) and value.keys() == {_B64}:
        return _decoded(value[_B64], name, at)
    must = "a list of texts" if is_list else "a text"
    raise bad_request(f"instance {at}: {name} is {shown(value)}; it must be {must}.")


def _decoded(value: Any, name: str, at: int) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (TypeError, ValueError, binascii.Error):
        raise bad_request(
            f"instance {at}: {name} is {shown(value)}; it must be UTF-8 text in base64."
        ) from None


def predict_body(answerer: Answerer, answers: Sequence[Answer], by_columns: bool) -> dict[str, Any]:
    """What `:predict` gives: `predictions` by rows, or `outputs` by columns.

    Example:
        >>> from types import SimpleNamespace
        >>> asked = SimpleNamespace(outputs={"score": "a number"})
        >>> predict_body(asked, [{"score": 1.0}, {"score": 2.0}], by_columns=False)
        {'predictions': [1.0, 2.0]}
    """
    names = list(answerer.outputs)
    if not by_columns:
        return {"predictions": [one[names[0]] for one in answers] if len(names) == 1 else answers}
    columns = {name: [one.get(name) for one in answers] for name in names}
    return {"outputs": columns[names[0]] if len(names) == 1 else columns}


def classify_body(
    answerer: Answerer, labels: Sequence[str], answers: Sequence[Answer]
) -> dict[str, Any]:
    """What `:classify` gives: of each example all labels with their probabilities.

    Example:
        >>> from types import SimpleNamespace
        >>> asked = SimpleNamespace(kind="label")
        >>> classify_body(asked, ["no", "yes"], [{"probabilities": [0.25, 0.75]}])
        {'result': [[['no', 0.25], ['yes', 0.75]]]}
    """
    if answerer.kind not in ("label", "labels"):
        raise _answers_otherwise(answerer, "labels")
    if not labels:
        raise bad_request("the model's labels have no names here; use :predict.")
    pairs = [zip(labels, one["probabilities"], strict=True) for one in answers]
    return {"result": [[list(pair) for pair in one] for one in pairs]}


def regress_body(answerer: Answerer, answers: Sequence[Answer]) -> dict[str, Any]:
    """What `:regress` gives: of each example a number."""
    if answerer.kind != "number":
        raise _answers_otherwise(answerer, "numbers")
    return {"result": [one["score"] for one in answers]}


def _answers_otherwise(answerer: Answerer, wanted: str) -> RequestError:
    kind = answerer.kind.replace("_", " ")
    return bad_request(f"the model answers with {kind} and not with {wanted}; use :predict.")


def check_version(name: str, version: str | None, label: str | None) -> None:
    """Holds the version, or the label of one, that a path names against the one that there is."""
    if label is not None:
        raise RequestError(
            404, f"{shown(name)} has no label {shown(label)}, only version {VERSION}."
        )
    if version is not None and version != VERSION:
        raise RequestError(404, f"{shown(name)} has no version {shown(version)}, only {VERSION}.")


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
    inputs = {
        one.name: _tensor(one.name, "DT_STRING", 2 if one.is_list else 1) for one in answerer.inputs
    }
    return {
        "inputs": inputs,
        "outputs": {name: _of_any_shape(name, about) for name, about in answerer.outputs.items()},
        "method_name": "tensorflow/serving/predict",
    }


def _tensor(name: str, kind: str, rank: int) -> dict[str, Any]:
    shape = {"dim": [{"size": "-1", "name": ""}] * rank, "unknown_rank": False}
    return {"dtype": kind, "tensor_shape": shape, "name": f"{name}:0"}


def _of_any_shape(name: str, about: str) -> dict[str, Any]:
    # Unpadded answers have no one shape; what they are is said in words.
    shape = {"dim": [], "unknown_rank": True}
    return {"dtype": "DT_INVALID", "tensor_shape": shape, "name": f"{name}:0", "about": about}
