"""What requests ask and replies hold, in forms that clients have.

TensorFlow Serving's REST form, OpenAI's of vectors, and the one for documents in order that
Cohere, Jina and TEI share. The documented calls of all work unchanged. In the first one a text may
be written as {"b64": "..."}, too; an instance with one field may stand as its bare value, and so
may answers with one.
"""

import base64
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.json_files import typed
from keras_bert_impl.options import Rules
from keras_bert_impl.serving.answerer import (
    Answerer,
    AnsweringModel,
    Input,
    Instance,
    asked_answerer,
)
from keras_bert_impl.serving.forms import read_fields
from keras_bert_impl.serving.http.bodies import RequestError, bad_request
from keras_bert_impl.serving.http.waiting import Answered
from keras_bert_impl.serving.reranking import best_of, can_rank, pair_scoring
from keras_bert_impl.serving.smaller_vectors import in_base64

DEFAULT_SIGNATURE = "serving_default"

_EXAMPLES = ("examples", "context")
METHODS = {"predict": ("instances", "inputs"), "classify": _EXAMPLES, "regress": _EXAMPLES}
"""What each method takes beside `signature_name`."""

_OF_SEARCH = ("query", "top_k", "index")
_OF_EMBEDDINGS = (
    *("input", "model", "encoding_format", "dimensions", "user"),
    *("input_type", "vector_type"),
)
MOST_FOUND, _MOST_OF_ALL = 1000, 20_000
"""Results a query, and of all queries of a request."""

B64 = "b64"
"""The one entry of an object that is a text in base64."""

_Write = Callable[[Answered], Any]


class Asked(NamedTuple):
    """What a request asks."""

    answerer: Answerer
    instances: Sequence[Instance]
    write: _Write
    is_long: bool = False


@dataclasses.dataclass(frozen=True)
class ServedIndex:
    """An index of vectors that `/search` asks.

    Attributes:
        model: the name of the model whose vectors it holds.
        options: what that model is asked with a query.
        search: takes the vectors of queries, float32 [queries, size], and how many results to give;
            gives of each query `id`, `score` and `text` of the nearest, as JSON values.
        check: refuses another version of the model, given how it is opened, of other vectors.
    """

    model: str
    options: Mapping[str, Any]
    search: Callable[[NDArray[np.float32], int], list[list[dict[str, Any]]]]
    check: Callable[[Any], Any]


@dataclasses.dataclass(frozen=True)
class Versions:
    """The versions of a model, by number.

    Attributes:
        models: those that answer; the highest one where a path names none.
        labels: their numbers, by the labels that paths may name.
        others: of those that do not answer the states: LOADING, or END where that failed.
    """

    models: Mapping[int, AnsweringModel]
    labels: Mapping[str, int] = dataclasses.field(default_factory=dict)
    others: Mapping[int, str] = dataclasses.field(default_factory=dict)

    @property
    def newest(self) -> int:
        return max(self.models)

    def named(self, name: str, version: str | None, label: str | None) -> int:
        numbers = {str(one): one for one in self.models}
        what, known = ("version", numbers) if label is None else ("label", self.labels)
        found = label or version or str(self.newest)
        if found not in known:
            there_are = ", ".join(sorted(known)) or "none"
            sentence = f"{shown(name)} has no {what} {shown(found)}; there are: {there_are}."
            raise RequestError(404, sentence)
        return known[found]


def read(model: AnsweringModel, method: str, body: Any) -> Asked:
    """Reads what a method of a model got."""
    form = ("encoding_format",) if method == "predict" else ()
    _check_entries(body, (*METHODS[method], "signature_name", *form))
    rows = _examples(body) if method != "predict" else _rows(body)
    if not isinstance(rows, list) or not rows:
        raise bad_request("send a list with at least one instance.")
    check_count(rows)
    answerer = _answerer(model, body.get("signature_name"), rows[0])
    instances = [_instance(answerer.inputs, row, method != "predict") for row in rows]
    try:
        read_fields(answerer.inputs, instances, answerer.options)
    except UserError as error:
        raise bad_request(str(error)) from None
    if method != "predict":
        return Asked(answerer, instances, _writer(model, answerer, method))
    by_columns = functools.partial(_by_columns, list(answerer.outputs))
    write = by_columns if "inputs" in body else _by_rows
    if body.get("encoding_format") in (None, "float"):
        return Asked(answerer, instances, write)
    if body["encoding_format"] != "base64" or answerer.kind != "vector":
        raise bad_request("`encoding_format` is float or, of vectors, base64.", "encoding_format")
    output = next(iter(answerer.outputs))

    def write_packed(answered: Answered) -> Any:
        pairs = zip(answered.answers, instances, strict=True)
        packed = [{**one, output: in_base64(one[output], asked)} for one, asked in pairs]
        return write(answered._replace(answers=packed))

    return Asked(answerer, instances, write_packed)


def _given(body: Any, entries: Sequence[str], ignored: Sequence[str] = ()) -> dict[str, Any]:
    """The entries of a body; null is as if it were not there, and so are those to be ignored."""
    if isinstance(body, dict):
        body = {one: body[one] for one in body if body[one] is not None and one not in ignored}
    _check_entries(body, entries)
    return body


def _check_entries(body: Any, entries: Sequence[str]) -> None:
    if not isinstance(body, dict):
        raise bad_request(f"send a JSON object with {', '.join(entries)}.")
    if unknown := body.keys() - {*entries}:
        known = f"send {', '.join(entries)}"
        raise bad_request(f"{shown(min(unknown))} is not known here; {known}.", min(unknown))


def _answerer(model: AnsweringModel, name: Any, first: Any) -> Answerer:
    """The answerer of a signature; by default as every door chooses it."""
    if name in ("", None) or (name == DEFAULT_SIGNATURE and name not in model.answerers):
        is_bare = not isinstance(first, dict) or first.keys() == {B64}
        return asked_answerer(model.answerers, ["" if is_bare else first])
    if isinstance(name, str) and name in model.answerers:
        return model.answerers[name]
    known = ", ".join(model.answerers)
    raise bad_request(f"`signature_name` is {shown(name)}; the model has {known}.")


def _rows(body: Mapping[str, Any]) -> Any:
    if ("instances" in body) == ("inputs" in body):
        raise bad_request("send either `instances` (rows) or `inputs` (columns).")
    columns = body.get("inputs")
    if not isinstance(columns, dict) or columns.keys() == {B64}:
        return body.get("instances", columns)
    for name, column in columns.items():
        if not isinstance(column, list) or not column:
            raise bad_request(f"`inputs`: {shown(name)} must be a list with at least one value.")
    counts = {name: len(column) for name, column in columns.items()}
    if len({*counts.values()}) > 1:
        raise bad_request(f"`inputs`: the columns differ in their lengths ({shown(counts)}).")
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _examples(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of `examples`, which may share a `context`."""
    examples, context = body.get("examples"), body.get("context", {})
    if not isinstance(examples, list) or not all(isinstance(x, dict) for x in (context, *examples)):
        raise bad_request("send `examples`, a list of objects, and perhaps `context`, an object.")
    return [{**context, **example} for example in examples]


def _instance(inputs: Sequence[Input], row: Any, of_features: bool) -> Instance:
    """The texts of a row; a feature may be a list of one value."""
    values = row if isinstance(row, dict) and row.keys() != {B64} else {inputs[0].name: row}
    singles = {one.name for one in inputs if not one.is_list} if of_features else set()
    return {name: _texts_in(value, name in singles) for name, value in values.items()}


def _texts_in(value: Any, single: bool) -> Any:
    if not isinstance(value, list):
        return _text(value)
    return _text(value[0]) if single and len(value) == 1 else [*map(_text, value)]


def _text(value: Any) -> Any:
    if not isinstance(value, dict) or value.keys() != {B64}:
        return value
    try:
        return base64.b64decode(value[B64], validate=True).decode()
    except (TypeError, ValueError):
        raise bad_request(f"{shown(value[B64])} is no UTF-8 text in base64.") from None


def _by_rows(answered: Answered) -> dict[str, Any]:
    bare = [one for answer in answered.answers if len(answer) == 1 for one in answer.values()]
    return {"predictions": bare or answered.answers}


def _by_columns(names: Sequence[str], answered: Answered) -> dict[str, Any]:
    columns = {name: [one[name] for one in answered.answers] for name in names}
    return {"outputs": columns[names[0]] if len(names) == 1 else columns}


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

    def write_labels(answered: Answered) -> dict[str, Any]:
        shares = [one["probabilities"] for one in answered.answers]
        return {"result": [[[*pair] for pair in zip(labels, x, strict=True)] for x in shares]}

    return write_labels


_FAILED = "it could not be opened; the server's log says why."


def status_body(
    name: str, versions: Versions, created: int, version: str | None, label: str | None
) -> dict[str, Any]:
    """What the path of a model gives: the states of its versions, and its entry in the list."""
    states = {**dict.fromkeys(versions.models, "AVAILABLE"), **versions.others}
    numbers = sorted(states, reverse=True)
    if version or label:
        waiting = [one for one in versions.others if str(one) == version]
        numbers = waiting or [versions.named(name, version, label)]
    told = []
    for one in numbers:
        code, message = ("UNKNOWN", _FAILED) if states[one] == "END" else ("OK", "")
        status = {"error_code": code, "error_message": message}
        told.append({"version": str(one), "state": states[one], "status": status})
    entry = model_entry(name, versions.models[versions.newest], created)
    return {"model_version_status": told, **entry}


def metadata_body(name: str, version: int, model: AnsweringModel) -> dict[str, Any]:
    """What `/metadata` gives: the signatures, and beside them what people want to know."""
    signatures = {one: _signature(answerer) for one, answerer in model.answerers.items()}
    default = next(iter(signatures.values()))
    defined = {"signature_def": {DEFAULT_SIGNATURE: default, **signatures}}
    return {
        "model_spec": {"name": name, "signature_name": "", "version": str(version)},
        "metadata": {"signature_def": defined, "description": dict(model.description)},
    }


def _signature(answerer: Answerer) -> dict[str, Any]:
    def field(name: str, dtype: str, shape: dict[str, Any], **more: str) -> dict[str, Any]:
        return {"dtype": dtype, "tensor_shape": shape, "name": f"{name}:0", **more}

    sizes = [{"size": "-1", "name": ""}]
    # Unpadded answers have no one shape; what they are is said in words.
    any_shape = {"dim": [], "unknown_rank": True}
    inputs, outputs = dict[str, Any](), dict[str, Any]()
    for one in answerer.inputs:
        shape = {"dim": sizes * (1 + one.is_list), "unknown_rank": False}
        inputs[one.name] = field(one.name, "DT_STRING", shape)
    for name, about in answerer.outputs.items():
        outputs[name] = field(name, "DT_INVALID", any_shape, about=about)
    method = "tensorflow/serving/predict"
    return {"inputs": inputs, "outputs": outputs, "method_name": method}


def vectors_of(model: AnsweringModel) -> Answerer | None:
    """The answerer of a model that gives vectors; None where it gives none."""
    return next((one for one in model.answerers.values() if one.kind == "vector"), None)


def read_embeddings(models: Mapping[str, AnsweringModel], body: Any) -> tuple[str, Asked]:
    """Reads what `/v1/embeddings` got: the model's name, and what it is asked."""
    _check_entries(body, _OF_EMBEDDINGS)
    name, form, dimensions = map(body.get, ("model", "encoding_format", "dimensions"))
    if not isinstance(name, str):
        raise bad_request("`model` must name a model; /v1/models lists them.", "model")
    answerer = vectors_of(models[name]) if name in models else None
    if answerer is None:
        known = "/v1/models lists those that do"
        raise _no_model(f"no model {shown(name)} gives vectors here; {known}.")
    for entry, value, right, wanted in (
        ("encoding_format", form, form in (None, "float", "base64"), "float or base64"),
        ("dimensions", dimensions, type(dimensions) in (int, type(None)), "a whole number"),
        *(
            (one, body.get(one), isinstance(body.get(one), str | None), "a text")
            for one in ("input_type", "vector_type", "user")
        ),
    ):
        if not right:
            raise bad_request(f"`{entry}` is {shown(value)}; give {wanted}.", entry)
    field, output = answerer.inputs[0].name, next(iter(answerer.outputs))
    options = {one.name: body.get(one.name) for one in answerer.options}
    instances = [{field: text, **options} for text in _texts(body.get("input"))]

    def write(answered: Answered) -> dict[str, Any]:
        vectors: list[Any] = [one[output] for one in answered.answers]
        if form == "base64":
            vectors = [in_base64(vector, options) for vector in vectors]
        data = [
            {"object": "embedding", "index": index, "embedding": vector}
            for index, vector in enumerate(vectors)
        ]
        return {"object": "list", "data": data, "model": name, "usage": _usage(answered)}

    return name, Asked(answerer, instances, write)


def _usage(answered: Answered) -> dict[str, int]:
    return dict.fromkeys(("prompt_tokens", "total_tokens"), answered.tokens)


def read_search(
    models: Mapping[str, AnsweringModel], body: Any, indexes: Mapping[str, ServedIndex]
) -> tuple[str, Asked]:
    """Reads what `/search` got: the name of the index' model, and what it is asked."""
    body = _given(body, _OF_SEARCH)
    name, count, query = body.get("index", min(indexes)), body.get("top_k", 10), body.get("query")
    if not isinstance(name, str) or name not in indexes:
        known = ", ".join(indexes)
        raise RequestError(404, f"there is no index {shown(name)}; there are: {known}.")
    if "index" not in body and len(indexes) > 1:
        raise bad_request(f"`index` must name one of {', '.join(indexes)}.", "index")
    if type(count) is not int or not 1 <= count <= MOST_FOUND:
        wanted = f"give a number from 1 to {MOST_FOUND}"
        raise bad_request(f"`top_k` is {shown(count)}; {wanted}.", "top_k")
    index = indexes[name]
    answerer = vectors_of(models[index.model])
    assert answerer is not None, "an index is of a model of vectors"
    field, output = answerer.inputs[0].name, next(iter(answerer.outputs))
    instances = [{field: text, **index.options} for text in _texts(query, "query")]
    if len(instances) * count > _MOST_OF_ALL:
        asked = f"{len(instances)} queries with `top_k` {count}"
        fault = f"are more than {_MOST_OF_ALL} results; send fewer of them at once"
        raise bad_request(f"{asked} {fault}.", "top_k")

    def write(answered: Answered) -> dict[str, Any]:
        vectors = np.array([one[output] for one in answered.answers], np.float32)
        found = index.search(vectors, count)
        return {"index": name, "results": found[0] if isinstance(query, str) else found}

    return index.model, Asked(answerer, instances, write, is_long=True)


RERANK_PATHS = ("/rerank", "/v1/rerank", "/v2/rerank")
"""Where Text Embeddings Inference, Jina and Cohere have it; the body says whose form it is."""


_Count = Annotated[int, Rules(sentence="", at_least=1)]


class _Document(TypedDict):
    text: str


class _Reranking(TypedDict):
    """What `/rerank` takes: Cohere's and Jina's `documents`, or TEI's `texts`."""

    query: str
    documents: NotRequired[list[str | _Document]]
    texts: NotRequired[list[str]]
    model: NotRequired[str | None]
    top_n: NotRequired[_Count | None]
    return_documents: NotRequired[bool | None]
    return_text: NotRequired[bool | None]
    raw_scores: NotRequired[bool | None]
    truncate: NotRequired[bool | None]
    truncation: NotRequired[bool | None]  # as Voyage calls it
    truncation_direction: NotRequired[Literal["Right", "right"] | None]
    positive_label: NotRequired[str | None]


IGNORED = (
    *("max_tokens_per_doc", "max_chunks_per_doc", "priority", "rank_fields"),
    *("user", "truncate_prompt_tokens", "return_len"),
)
"""What some clients send beside, of how much is read and how it is computed."""


def read_rerank(models: Mapping[str, AnsweringModel], body: Any) -> tuple[str, Asked]:
    """Reads what `/rerank` got: the model's name, and what it is asked.

    Documents that are called `texts` are answered as Text Embeddings Inference does, with a bare
    list; others as Cohere and Jina do.
    """
    body = _given(body, tuple(_Reranking.__annotations__), IGNORED)
    if ("documents" in body) == ("texts" in body):
        raise bad_request("send either `documents` or `texts`, a list of texts.", "documents")
    check_count(body.get("documents", body.get("texts")))
    try:
        asked: _Reranking = typed(body, _Reranking, "the body", "send it otherwise")
        name = _reranking_model(models, asked.get("model"))
        scoring = pair_scoring(models[name], asked.get("positive_label"))
    except UserError as error:
        raise bad_request(str(error)) from None
    is_tei = "texts" in asked
    given = asked["texts"] if is_tei else asked["documents"]
    texts = [one if isinstance(one, str) else one["text"] for one in given]
    if not texts:
        raise bad_request("there is no document; send at least one.", "documents")

    def write(answered: Answered) -> Any:
        refusing = [one for one in ("truncate", "truncation") if body.get(one) is False]
        if refusing and any(answered.num_truncated):
            fault = "a query with its document is longer than the model reads"
            remedy = f"shorten them, or leave `{refusing[0]}` out"
            raise bad_request(f"{fault}; {remedy}.", refusing[0])
        number = scoring.raw if asked.get("raw_scores") else scoring.score
        results = list[dict[str, Any]]()
        for one in best_of(scoring, answered.answers, asked.get("top_n")):
            score = number(answered.answers[one])
            results.append({"index": one, "score" if is_tei else "relevance_score": score})
            if asked.get("return_text") or asked.get("return_documents"):
                text = {"text": texts[one]}
                results[-1].update(text if is_tei else {"document": text})
        about = {"model": name, "object": "list", "usage": _usage(answered)}
        return results if is_tei else {**about, "results": results}

    return name, Asked(scoring.answerer, scoring.instances(asked["query"], texts), write)


MOST_INSTANCES = 2048
"""Of a request."""


def check_count(instances: Any) -> None:
    """Refuses a list of too many, before anything is done with each."""
    if isinstance(instances, list) and len(instances) > MOST_INSTANCES:
        sentence = f"a request may have {MOST_INSTANCES} instances; send more of them."
        raise RequestError(413, sentence)


def _reranking_model(models: Mapping[str, AnsweringModel], name: str | None) -> str:
    """The model that is named; where only one scores pairs, it need not be."""
    able = [one for one, model in models.items() if can_rank(model)]
    if name is None and len(able) == 1:
        return able[0]
    if name in able:
        return str(name)
    known = f"those that score pairs of texts here are: {', '.join(able) or 'none'}"
    raise _no_model(f"`model` is {shown(name)}; {known}.")


def _no_model(sentence: str) -> RequestError:
    return RequestError(404, sentence, code="model_not_found", parameter="model")


def _texts(given: Any, entry: str = "input") -> list[str]:
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts:
        raise bad_request(f"`{entry}` must be a text or a list of texts.", entry)
    check_count(texts)
    for at, text in enumerate(texts, start=1):
        if type(text) is not str:
            ids = type(text) is int or isinstance(text, list)
            what = "ids of tokens are not taken" if ids else f"text {at} is {shown(text)}"
            raise bad_request(f"`{entry}`: {what}; send texts.", entry)
    return texts


def capabilities_of(model: AnsweringModel) -> list[str]:
    """Which paths take a model, by their last words."""
    main = next(iter(model.answerers.values()))
    able = {
        "predict": True,
        "classify": main.kind in ("label", "labels"),
        "regress": main.kind == "number",
        "embeddings": vectors_of(model) is not None,
        "rerank": can_rank(model),
    }
    return [one for one, is_able in able.items() if is_able]


def model_entry(name: str, model: AnsweringModel, created: int) -> dict[str, Any]:
    """A model as OpenAI's list has it, with what it can be asked."""
    known = {"id": name, "object": "model", "created": created, "owned_by": "keras_bert_impl"}
    return {**known, "capabilities": capabilities_of(model)}
