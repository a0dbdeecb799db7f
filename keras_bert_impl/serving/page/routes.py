"""The playground: its page, and what the page asks besides answers (tokens and attention)."""

import asyncio
import functools
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from keras_bert_impl.engines.config import TENSORFLOW
from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.files import StrPath
from keras_bert_impl.serving.answerer import Answerer, AnsweringModel, Instance, Row
from keras_bert_impl.serving.attention import AttentionModel, tokens_of
from keras_bert_impl.serving.http import rest
from keras_bert_impl.serving.http.bodies import BodyReader, RequestError, bad_request, to_json
from keras_bert_impl.serving.page.explain import STATIC, read_static, written_attention
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from keras_bert_impl.tokenization.vocabulary import Vocabulary

_PAGE = "index.html"
_KINDS = {"css": "text/css", "html": "text/html", "js": "text/javascript", "svg": "image/svg+xml"}
_MEBIBYTES, _SECONDS = 1, 10.0
_MOST_WAITING = 8  # requests for tokens or attention
_MOST_ROWS = 50  # of one text: windows of a passage without end
_LEAST_SHARE = 0.005  # of a vocabulary, below which a script is an accident
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_NAMES = sorted(file.name for file in STATIC.iterdir())
_FILES = {"/" if name == _PAGE else f"/playground/{name}": name for name in _NAMES}
_NO_ATTENTION = (
    "This export gives its outputs and not its attention; open the model directory that it was "
    "made from to see it."
)

OPEN_PATHS = tuple(_FILES)
"""The paths of the page itself, which tell nothing of any model."""


@dataclass(frozen=True)
class ShownModel:
    """A model, and what shows its inside.

    `vocabulary` is None where its folder has none; of no attention a sentence says why. `scripts`
    are the shares of the vocabulary's words.
    """

    model: AnsweringModel
    vocabulary: Vocabulary | None
    attention: AttentionModel | str
    scripts: Mapping[str, float]

    def description(self, name: str) -> dict[str, Any]:
        """What the page must know to show its panels, as JSON values."""
        return {
            "name": name,
            "description": dict(self.model.description),
            "signatures": [_signature(one) for one in self.model.answerers.values()],
            "attention": self.attention if isinstance(self.attention, str) else None,
            "scripts": self.scripts,
        }

    def tokens(self, answerer: Answerer, instance: Instance) -> dict[str, Any]:
        """The rows that an instance becomes, with their tokens and ids, as JSON values."""
        if self.vocabulary is None:
            raise UserError("the model's folder has no vocabulary; its tokens have no names.")
        rows = list[dict[str, Any]]()
        for row in islice(rows_of(answerer, instance), _MOST_ROWS):
            ids, segments = row["input_ids"], row["segment_ids"].tolist()
            tokens = list(tokens_of(ids, self.vocabulary))
            rows.append({"tokens": tokens, "ids": ids.tolist(), "segments": segments})
        return {"rows": rows}

    def attend(self, answerer: Answerer, instance: Instance) -> dict[str, Any]:
        """The attention of the first row that an instance becomes, as JSON values."""
        if isinstance(self.attention, str):
            raise UserError(self.attention)
        rows = list(islice(rows_of(answerer, instance), _MOST_ROWS))
        return {**written_attention(self.attention.of_row(rows[0])), "rows": len(rows)}


def show_model(
    path: StrPath, model: AnsweringModel, *, engine: str = TENSORFLOW, **description: Any
) -> ShownModel:
    """Adds to an open model what shows its inside."""
    try:
        opened = AttentionModel.open(path, engine=engine, **description)
        return ShownModel(model, opened.vocabulary, opened, scripts_of(opened.vocabulary))
    except UserError:
        files = (Path(path) / name for name in ("vocab.txt", "tokenizer.json"))
        file = next((file for file in files if file.exists()), None)
        if file is None:
            return ShownModel(model, None, _NO_ATTENTION, {})
        vocabulary = Vocabulary.load(file)
        return ShownModel(model, vocabulary, _NO_ATTENTION, scripts_of(vocabulary))


def scripts_of(vocabulary: Vocabulary) -> dict[str, float]:
    """The share that each script has of a vocabulary's words, those with little of it left out.

    Example:
        >>> special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        >>> scripts_of(Vocabulary([*special, "cat", "##s", "고", "##양"]))
        {'LATIN': 0.5, 'HANGUL': 0.5}
    """
    words = [token for token in vocabulary.tokens if token[-1].isalpha()]
    found = Counter(unicodedata.name(word[-1], "").partition(" ")[0] for word in words)
    shares = {script: count / len(words) for script, count in found.most_common()}
    return {script: share for script, share in shares.items() if share >= _LEAST_SHARE}


def rows_of(answerer: Answerer, instance: Instance) -> Iterator[Row]:
    """The encoder's inputs of each row of an instance, without padding; of choices one by one."""
    for row in answerer.prepare([instance]).rows:
        ids = np.atleast_2d(row["input_ids"])
        mask = np.atleast_2d(row["input_mask"])
        segments = np.atleast_2d(row.get("segment_ids", ids * 0))
        for parts in zip(ids, mask, segments, strict=True):
            length = int(np.flatnonzero(parts[1]).max(initial=-1)) + 1
            yield dict(zip(ENCODER_INPUTS, (part[:length] for part in parts), strict=True))


def _signature(answerer: Answerer) -> dict[str, Any]:
    fields = [
        {"name": one.name, "is_list": one.is_list, "needed": one.needed, "about": one.about}
        for one in answerer.inputs
    ]
    known = {"signature": answerer.signature, "kind": answerer.kind}
    return {**known, "inputs": fields, "outputs": list(answerer.outputs)}


def page_routes(models: Mapping[str, ShownModel]) -> list[BaseRoute]:
    """The routes of the page, for `make_app`.

    `tokens` and `attention` take what `:predict` takes, of one instance. They are answered one
    after the other: threads are left for the requests of programs.
    """
    bodies, turn, waiting = BodyReader(_SECONDS, _MEBIBYTES), asyncio.Lock(), 0

    async def list_models(_request: Request) -> Response:
        return _json({"models": [one.description(name) for name, one in models.items()]})

    async def answer(work: Callable[..., dict[str, Any]], request: Request) -> Response:
        nonlocal waiting
        name = request.path_params["name"]
        if name not in models:
            raise RequestError(404, f"there is no model {shown(name)}.")
        asked = rest.read(models[name].model, "predict", await bodies.json(request))
        if len(asked.instances) != 1:
            raise bad_request("send one instance.")
        if waiting == _MOST_WAITING:
            raise RequestError(429, "too many requests wait; ask again later.", retry_after=1)
        waiting += 1
        try:
            async with turn:
                if await request.is_disconnected():
                    raise ClientDisconnect
                given = (models[name], asked.answerer, asked.instances[0])
                return _json(await asyncio.to_thread(work, *given))
        except UserError as error:
            raise bad_request(str(error)) from None
        finally:
            waiting -= 1

    path, ways = "/playground/models", {"tokens": ShownModel.tokens, "attention": ShownModel.attend}
    return [
        *(Route(where, functools.partial(_static, name)) for where, name in _FILES.items()),
        Route(path, list_models),
        *(
            Route(f"{path}/{{name:name}}/{way}", functools.partial(answer, work), methods=["POST"])
            for way, work in ways.items()
        ),
    ]


def _static(name: str, _request: Request) -> Response:
    kind = _KINDS[name.rpartition(".")[2]]
    return Response(read_static(name), headers=_HEADERS, media_type=kind)


def _json(value: Any) -> Response:
    headers = {**_HEADERS, "Cache-Control": "no-store"}
    return Response(to_json(value), headers=headers, media_type="application/json")
