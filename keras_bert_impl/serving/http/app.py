"""The application: which path asks which model, in whose form."""

import asyncio
import contextlib
import functools
import logging
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope

from keras_bert_impl.errors import shown
from keras_bert_impl.serving.answerer import NUM_TRUNCATED, Answerer, AnsweringModel
from keras_bert_impl.serving.http import rest
from keras_bert_impl.serving.http.answer_cache import AnswerCache
from keras_bert_impl.serving.http.batching import Batch, Batcher, Observer
from keras_bert_impl.serving.http.bodies import BodyReader, RequestError, fault_body, to_json
from keras_bert_impl.serving.http.config import ServerConfig
from keras_bert_impl.serving.http.openapi import openapi_document
from keras_bert_impl.serving.http.waiting import Answered
from keras_bert_impl.serving.http.wire import CUT_OFF, METHOD, REQUEST_ID, Guard, Wire

_LOGGER = logging.getLogger(__name__)

_FEW = 32  # instances whose answers are written at once
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_PACKED = 1024  # bytes of an answer from which on packing is worth it
_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}

_Endpoint = Callable[[Request], Awaitable[Response]]


class _NameConvertor(StringConvertor):
    """A part of a path, before any colon."""

    regex = "[^/:]+"


register_url_convertor("name", _NameConvertor())


def make_app(
    models: Mapping[str, AnsweringModel],
    config: ServerConfig,
    *,
    indexes: Mapping[str, rest.ServedIndex] | None = None,
    routes: Sequence[BaseRoute] = (),
    open_paths: Collection[str] = (),
) -> Starlette:
    """Makes the application that asks models, and indexes of their vectors.

    Its `state.service` is the `Service`; when its lifespan ends, what waits is answered, and
    the models are closed.
    """
    service = Service(models, config, indexes or {})
    handlers: Mapping[Any, Any] = {
        HTTPException: _answer_fault,
        ClientDisconnect: _answer_lost_client,
        Exception: _answer_bug,
    }
    of_pages = Middleware(
        _Pages,
        allow_origins=config.origins(),
        allow_methods=("GET", "POST"),
        allow_headers=("*",),
        allow_private_network=True,
        expose_headers=("Retry-After", "X-Request-ID"),
    )
    app = Starlette(
        routes=[*service.routes(), *routes],
        middleware=[
            Middleware(Wire, log=config.access_log, count=service.count, refuse=_answer_fault),
            *([of_pages] if config.allowed_origins else []),
            # Within: refusals have our form, and what their pages need to read them.
            Middleware(ExceptionMiddleware, handlers=handlers),
            Middleware(Guard, config=config, open_paths=open_paths),
            # From 128 KiB on it packs in a thread.
            Middleware(GZipMiddleware, minimum_size=_PACKED, compresslevel=1),
        ],
        exception_handlers=handlers,
        lifespan=service.lifespan,
    )
    app.router.redirect_slashes = False  # to an address that the sender's `Host` would make up
    app.state.service = service
    return app


class _Pages(CORSMiddleware):
    """Answers what browsers ask before they ask; refuses in our form."""

    def preflight_response(self, request_headers: Headers) -> Response:
        response = super().preflight_response(request_headers)
        if response.status_code < 400:
            return response
        return _json({"error": f"{bytes(response.body).decode()}."}, 403)


class Service:
    """Models behind paths.

    When it is `stopping`, it takes no more requests; `cut_off` are those that its stop did not
    answer. Until it `is_warm`, so that what the first use makes is made, it answers, but is not
    ready.
    """

    def __init__(
        self,
        models: Mapping[str, AnsweringModel],
        config: ServerConfig,
        indexes: Mapping[str, rest.ServedIndex],
    ) -> None:
        self._config, self._indexes = config, indexes
        self._has_key = config.key() is not None
        self._models = dict[str, AnsweringModel]()  # where no version is named
        self._versions = dict[str, rest.Versions]()
        self._batchers = dict[int, Batcher]()  # by the `id` of their answerers
        self._loop: asyncio.AbstractEventLoop | None = None
        self._figures = Figures()
        self._cache: AnswerCache | None = None
        if config.cache_mebibytes:
            self._cache = self._figures.watched(config.cache_mebibytes << 20)
        self._bodies = BodyReader(config.read_seconds)
        self._started = int(time.time())
        self.stopping, self.is_warm, self.cut_off = False, True, 0
        for name, model in models.items():
            self.serve(name, rest.Versions({1: model}))

    def serve(self, name: str, versions: rest.Versions) -> None:
        """Lets these versions of a model answer, and no others.

        Those that are left out end what they have begun, and are closed before this returns. One
        thread may call it while others are answered.
        """
        before = self._versions.get(name, rest.Versions({})).models.values()
        after = versions.models.values()
        for signature, answerer in ((x, y) for one in after for x, y in one.answerers.items()):
            if id(answerer) not in self._batchers:
                self._batchers[id(answerer)] = self._batcher(name, signature, answerer)
        self._versions[name] = versions
        self._models[name] = versions.models[versions.newest]
        left_out = [model for model in before if all(model is not one for one in after)]
        if left_out:
            self._await_askers()
        for model in left_out:
            self._close(model)

    def _await_askers(self) -> None:
        """Waits until whoever has found a model has asked it: that is one step of the loop."""
        loop, passed = self._loop, threading.Event()
        with contextlib.suppress(RuntimeError):  # the loop is closed
            if loop is not None:
                loop.call_soon_threadsafe(passed.set)
            while loop is not None and loop is self._loop and not passed.wait(0.1):
                pass

    def _close(self, model: AnsweringModel) -> None:
        for answerer in model.answerers.values():
            if batcher := self._batchers.pop(id(answerer), None):
                batcher.close()
        model.close()

    def _batcher(self, name: str, signature: str, answerer: Answerer) -> Batcher:
        observer = self._figures.watch(name, signature, lambda: self._waiting(name, signature))
        limits = self._config.max_waiting, observer, self._config.answer_seconds
        return Batcher(answerer, *limits, self._cache, self._characters)

    def _characters(self) -> int:
        return sum(one.characters for one in [*self._batchers.values()])

    def _waiting(self, name: str, signature: str) -> int:
        answerers = [one.answerers.get(signature) for one in self._versions[name].models.values()]
        batchers = [self._batchers.get(id(answerer)) for answerer in answerers]
        return sum(one.waiting for one in batchers if one)

    @contextlib.asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        yield
        self._loop = None
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Answers what waits, and lets the models go."""
        for versions in self._versions.values():
            for model in versions.models.values():
                self._close(model)

    def routes(self) -> list[BaseRoute]:
        routes: list[BaseRoute] = [
            Route("/v1/models", self._list_models),
            Route("/healthz", self._health),
            Route("/readyz", self._ready),
            Route("/metrics", self._metrics),
            Route("/openapi.json", self._openapi),
        ]
        asked: dict[str, tuple[str, Any]] = {"/v1/embeddings": ("embeddings", rest.read_embeddings)}
        if self._indexes:
            search = functools.partial(rest.read_search, indexes=self._indexes)
            asked["/search"] = ("search", search)
        asked |= dict.fromkeys(rest.RERANK_PATHS, ("rerank", rest.read_rerank))
        for path, (method, read) in asked.items():
            counted = self._counted(functools.partial(self._ask_named, read), method)
            routes.append(Route(path, counted, methods=["POST"]))
        for which in ("", "/versions/{version:name}", "/labels/{label:name}"):
            path = f"/v1/models/{{name:name}}{which}"
            for method in rest.METHODS:
                counted = self._counted(functools.partial(self._ask_form, method), method)
                routes.append(Route(f"{path}:{method}", counted, methods=["POST"]))
            routes.append(Route(f"{path}/metadata", self._metadata))
            routes.append(Route(path, self._status))
        return routes

    def _counted(self, endpoint: _Endpoint, method: str) -> _Endpoint:
        """An endpoint that is counted, whatever comes of it."""

        async def answer(request: Request) -> Response:
            request.scope[METHOD] = method
            return await endpoint(request)

        return answer

    def count(self, scope: Scope, status: int, seconds: float, is_stopped: bool) -> None:
        """Counts a request that asked a model, or that was refused before."""
        self.cut_off += is_stopped or (self.stopping and status == CUT_OFF)
        if method := scope.get(METHOD):
            name = scope.get("path_params", {}).get("name") or scope.get(_MODEL, "")
            known = str(name) if name in self._models else ""
            self._figures.request(known, method, status, seconds)

    async def _ask(self, request: Request, asked: rest.Asked) -> Response:
        """Answers instances, unless the client goes away or must wait."""
        batcher = self._batchers[id(asked.answerer)]
        answer = batcher.ask(asked.instances)
        loop = asyncio.get_running_loop()
        watch = loop.create_task(_when_gone(request.receive, answer))
        give_up = functools.partial(_give_up, answer, batcher)
        timer = loop.call_later(self._config.answer_seconds, give_up)
        try:
            written = functools.partial(_written, asked, await answer)
            is_long = asked.is_long or len(asked.instances) > _FEW
            return await asyncio.to_thread(written) if is_long else written()
        finally:
            watch.cancel()
            timer.cancel()

    def _model(self, request: Request) -> tuple[str, int, AnsweringModel]:
        """The model that a path names, and its version; of now: another may answer later."""
        name, version, label = _named(request)
        versions = self._versions_of(name)
        number = versions.named(name, version, label)
        return name, number, versions.models[number]

    def _versions_of(self, name: str) -> rest.Versions:
        if name not in self._versions:
            known = ", ".join(self._models)
            raise RequestError(404, f"there is no model {shown(name)}; there are: {known}.")
        return self._versions[name]

    async def _ask_form(self, method: str, request: Request) -> Response:
        self._model(request)
        body = await self._bodies.json(request)
        _, _, model = self._model(request)
        return await self._ask(request, rest.read(model, method, body))

    async def _ask_named(self, read: Callable[..., Any], request: Request) -> Response:
        """Asks the model that the body names."""
        request.scope[_MODEL], asked = read(self._models, await self._bodies.json(request))
        return await self._ask(request, asked)

    async def _status(self, request: Request) -> Response:
        name, *which = _named(request)
        return _json(rest.status_body(name, self._versions_of(name), self._started, *which))

    async def _metadata(self, request: Request) -> Response:
        return _json(rest.metadata_body(*self._model(request)))

    async def _list_models(self, _request: Request) -> Response:
        known = self._models.items()
        entries = [rest.model_entry(name, model, self._started) for name, model in known]
        return _json({"object": "list", "data": entries})

    async def _health(self, _request: Request) -> Response:
        return _json({"status": "alive"})

    async def _ready(self, _request: Request) -> Response:
        if self.stopping:
            raise RequestError(503, "the server is about to stop.", retry_after=1)
        if not self.is_warm:
            raise RequestError(503, "the server warms up.", retry_after=1)
        return _json({"status": "ready"})

    async def _metrics(self, _request: Request) -> Response:
        headers = {**_HEADERS, "Content-Type": CONTENT_TYPE_LATEST}
        return Response(self._figures.text(), headers=headers)

    async def _openapi(self, _request: Request) -> Response:
        return _json(openapi_document(self._models, self._indexes, self._has_key))


class Figures:
    """What Prometheus reads: requests, their time, batches, tokens, and what waits."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ours, call = ("model", "signature"), ("model", "method")

        def add(kind: Any, name: str, about: str, labels: Sequence[str], **more: Any) -> Any:
            return kind(f"keras_bert_{name}", about, labels, registry=self._registry, **more)

        self._requests = add(Counter, "requests", "Requests.", (*call, "status"))
        about = "From a request's head to its answer, all of it handed to the system."
        self._seconds = add(Histogram, "request_seconds", about, call, buckets=_SECONDS)
        self._rows = add(Histogram, "batch_rows", "Rows of a batch.", ours, buckets=_ROWS)
        about = "Computation of a batch."
        self._batch_seconds = add(Histogram, "batch_seconds", about, ours, buckets=_SECONDS)
        self._tokens = add(Counter, "tokens", "Tokens computed.", ours)
        about = "Positions computed: tokens and their padding."
        self._positions = add(Counter, "positions", about, ours)
        about = "Instances whose answers were kept."
        self._cache_hits = add(Counter, "cache_hits", about, ())
        about = "Instances whose answers were not kept, where some are."
        self._cache_misses = add(Counter, "cache_misses", about, ())
        about = "Bytes of the answers that are kept."
        self._cache_bytes = add(Gauge, "cache_bytes", about, ())
        about = "Instances whose answers are not there yet."
        self._waiting = add(Gauge, "waiting_instances", about, ours)

    def request(self, model: str, method: str, status: int, seconds: float) -> None:
        self._requests.labels(model, method, str(status)).inc()
        self._seconds.labels(model, method).observe(seconds)

    def watch(self, model: str, signature: str, waiting: Callable[[], int]) -> Observer:
        labels = (model, signature)
        self._waiting.labels(*labels).set_function(waiting)
        rows, duration = self._rows.labels(*labels), self._batch_seconds.labels(*labels)
        tokens, positions = self._tokens.labels(*labels), self._positions.labels(*labels)

        def count(batch: Batch) -> None:
            rows.observe(batch.rows)
            duration.observe(batch.seconds)
            tokens.inc(batch.tokens)
            positions.inc(batch.positions)

        return count

    def watched(self, most_bytes: int) -> AnswerCache:
        """A cache whose hits, misses and bytes are shown."""
        cache = AnswerCache(most_bytes, self._cache_hits, self._cache_misses)
        self._cache_bytes.set_function(lambda: cache.size)
        return cache

    def text(self) -> bytes:
        return generate_latest(self._registry)


_MODEL = "keras_bert.model"  # in a scope: the model that a body names


def _named(request: Request) -> tuple[str, str | None, str | None]:
    """The model, the version and the label that a path names."""
    path = request.path_params
    return path["name"], path.get("version"), path.get("label")


def _json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """JSON; a number that is not finite makes it status 500."""
    try:
        content = to_json(value)
    except ValueError:
        status = 500
        content = to_json({"error": "the model's answer holds a number that is not finite."})
    return Response(content, status, {**_HEADERS, **(headers or {})}, "application/json")


def _written(asked: rest.Asked, answered: Answered) -> Response:
    body = asked.write(answered)
    if any(answered.num_truncated) and isinstance(body, dict):
        body[NUM_TRUNCATED] = list(answered.num_truncated)
    return _json(body)


async def _when_gone(receive: Receive, answer: asyncio.Future[Answered]) -> None:
    """Drops a request whose client goes away."""
    while (await receive())["type"] != "http.disconnect":
        pass
    if not answer.done():
        answer.set_exception(ClientDisconnect())


def _give_up(answer: asyncio.Future[Answered], batcher: Batcher) -> None:
    if not answer.done():
        sentence = "no answer within the time that a request may wait; ask again later."
        later = batcher.retry_after(answer)
        answer.set_exception(RequestError(429, sentence, retry_after=later))


async def _answer_fault(request: Request, fault: Exception) -> Response:
    """Says what is wrong; of what the framework refuses, an unknown path say, with the path."""
    assert isinstance(fault, HTTPException)
    path = request.url.path
    if not isinstance(fault, RequestError):
        lists = "; /openapi.json lists what is there" * (fault.status_code == 404)
        sentence = f"{shown(request.method)} {shown(path)}: {fault.detail}{lists}."
        fault = RequestError(fault.status_code, sentence, headers=dict(fault.headers or {}))
    # OpenAI's form is that of all its API but for single models.
    body = fault_body(fault, path.startswith("/v1/") and not path.startswith("/v1/models/"))
    return _json(body, fault.status_code, fault.headers)


async def _answer_lost_client(_request: Request, _error: Exception) -> Response:
    return Response(status_code=CUT_OFF)


async def _answer_bug(request: Request, error: Exception) -> Response:
    _LOGGER.error("request %s failed.", request.scope.get(REQUEST_ID), exc_info=error)
    sentence = "the server failed at this request; its log says why."
    return await _answer_fault(request, RequestError(500, sentence))
