"""The paths of the playground: its page, and what the page asks besides answers."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from keras_bert_impl.errors import UserError, shown
from keras_bert_impl.serving.answerer import Answerer, Instance
from keras_bert_impl.serving.http import tensorflow_serving
from keras_bert_impl.serving.http.bodies import BodyReader, RequestError, bad_request, to_json
from keras_bert_impl.serving.page.shown_models import ShownModel
from keras_bert_impl.serving.page.single_page import STATIC, read_static

_PAGE = "index.html"
_KINDS = {
    "css": "text/css",
    "html": "text/html",
    "js": "text/javascript",
    "svg": "image/svg+xml",
}
_AT_ONCE, _MEBIBYTES, _SECONDS = 16, 1, 10.0
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

_FILES = tuple(sorted(file.name for file in STATIC.iterdir() if file.name != _PAGE))

OPEN_PATHS = ("/", *(f"/playground/{name}" for name in _FILES))
"""The paths of the page itself, which tell nothing of any model."""

_Work = Callable[[ShownModel, Answerer, Instance], dict[str, Any]]


def page_routes(models: Mapping[str, ShownModel]) -> list[BaseRoute]:
    """The routes of the page, for `make_app`."""
    page = Playground(models)
    path = "/playground/models/{name:name}"
    return [
        Route("/", lambda _: _static(_PAGE)),
        *(Route(f"/playground/{name}", _endpoint_of(name)) for name in _FILES),
        Route("/playground/models", page.models),
        Route(f"{path}/tokens", page.tokens, methods=["POST"]),
        Route(f"{path}/attention", page.attention, methods=["POST"]),
    ]


class Playground:
    """What the page asks: which models there are, their tokens and their attention."""

    def __init__(self, models: Mapping[str, ShownModel]) -> None:
        self._models = models
        self._bodies = BodyReader(_SECONDS, _MEBIBYTES)
        self._running = 0

    async def models(self, _request: Request) -> Response:
        """`models`: of each its name, description and signatures, and why it has no attention."""
        return _json({"models": [one.description(name) for name, one in self._models.items()]})

    async def tokens(self, request: Request) -> Response:
        """Takes what `:predict` takes, of one instance; gives `rows` of tokens and ids."""
        return await self._answer(request, ShownModel.tokens)

    async def attention(self, request: Request) -> Response:
        """Takes the same; gives the attention of the first row, see `written_attention`."""
        return await self._answer(request, ShownModel.attend)

    async def _answer(self, request: Request, work: _Work) -> Response:
        name = request.path_params["name"]
        if name not in self._models:
            raise RequestError(404, f"there is no model {shown(name)}.")
        model = self._models[name]
        body = await self._bodies.json(request)
        answerer, instances, _ = tensorflow_serving.read(model.model, "predict", body)
        if len(instances) != 1:
            raise bad_request("send one instance.")
        if self._running >= _AT_ONCE:
            raise RequestError(429, "too many requests wait; ask again later.", retry_after=1)
        self._running += 1
        try:
            return _json(await asyncio.to_thread(work, model, answerer, instances[0]))
        except UserError as error:
            raise bad_request(str(error)) from None
        finally:
            self._running -= 1


def _endpoint_of(name: str) -> Callable[[Request], Response]:
    return lambda _: _static(name)


def _static(name: str) -> Response:
    kind = _KINDS[name.rpartition(".")[2]]
    return Response(read_static(name), headers=_HEADERS, media_type=kind)


def _json(value: Any) -> Response:
    headers = {**_HEADERS, "Cache-Control": "no-store"}
    return Response(to_json(value), headers=headers, media_type="application/json")
