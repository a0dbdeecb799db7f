"""The application in this process: each status, each form."""

import asyncio
import gzip
import json
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from keras_bert_impl.serving.http import batching, bodies
from keras_bert_impl.serving.http.app import make_app
from keras_bert_impl.serving.http.config import ServerConfig
from tests.support.asgi_client import ask, request
from tests.support.toy_answerer import ToyAnswerer, ToyModel, ToyVectors

PREDICT, VECTORS = "/v1/models/toy:predict", "/v1/models/vectors:predict"
TEXT = {"instances": ["abc"]}


class Labels(ToyAnswerer):
    """Gives each text a label."""

    def __init__(self):
        super().__init__(kind="label", outputs={"label": "", "probabilities": ""})

    def finish(self, prepared, outputs):
        return [{"label": "no", "probabilities": [0.75, 0.25]} for _ in outputs]


def labelled():
    return ToyModel({"text": Labels()}, {"labels": ["no", "yes"]})


def app_of(answerer=None, **config):
    models = {
        "toy": ToyModel({"text": answerer or ToyAnswerer()}),
        "vectors": ToyModel({"embed": ToyVectors()}),
        "labels": labelled(),
    }
    return make_app(models, ServerConfig(**config))


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        (PREDICT, TEXT, {"predictions": [3.0]}),
        (PREDICT, {"inputs": {"text": ["a", "bc"]}}, {"outputs": [1.0, 2.0]}),
        ("/v1/models/toy/versions/1:predict", TEXT, {"predictions": [3.0]}),
        ("/v1/models/toy:regress", {"examples": [{"text": "abc"}]}, {"result": [3.0]}),
        (
            "/v1/models/labels:classify",
            {"examples": [{"text": ["abc"]}]},
            {"result": [[["no", 0.75], ["yes", 0.25]]]},
        ),
    ],
)
def test_texts_are_answered_in_tensorflow_servings_form(path, body, expected):
    reply = ask(app_of(), "POST", path, body)
    assert (reply.status, reply.json()) == (200, expected)
    assert reply.headers["content-type"] == "application/json"


@pytest.mark.parametrize("path", ["/v1/models/toy", "/v1/models/toy/versions/1"])
def test_the_status_of_a_model(path):
    reply = ask(app_of(), "GET", path)
    (status,) = reply.json()["model_version_status"]
    assert status["state"] == "AVAILABLE"
    assert reply.json()["id"] == "toy"


def test_metadata_name_the_signatures():
    (spec, metadata) = ask(app_of(), "GET", "/v1/models/toy/metadata").json().values()
    assert spec["name"] == "toy"
    assert set(metadata["signature_def"]["signature_def"]) == {"serving_default", "text"}


@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_vectors_in_openais_form(encoding):
    body = {"model": "vectors", "input": ["abc", "d"], "encoding_format": encoding}
    reply = ask(app_of(), "POST", "/v1/embeddings", body)
    assert reply.status == 200
    assert reply.json()["usage"] == {"prompt_tokens": 4, "total_tokens": 4}
    (first, _) = reply.json()["data"]
    packed = "AABAQAAAAD8=" if encoding == "base64" else [3.0, 0.5]
    assert first == {"object": "embedding", "index": 0, "embedding": packed}


@pytest.mark.parametrize("asked", [{"instances": ["abc", "d"]}, {"inputs": {"text": ["abc", "d"]}}])
def test_vectors_of_predict_may_be_packed_too(asked):
    reply = ask(app_of(), "POST", VECTORS, {**asked, "encoding_format": "base64"})
    assert [*reply.json().values()] == [["AABAQAAAAD8=", "AACAPwAAAD8="]]
    for path, form in ((PREDICT, "base64"), (VECTORS, "hex")):
        assert ask(app_of(), "POST", path, {**asked, "encoding_format": form}).status == 400


def test_models_are_listed_in_openais_form():
    body = ask(app_of(), "GET", "/v1/models").json()
    assert [one["id"] for one in body["data"]] == ["toy", "vectors", "labels"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", PREDICT, b"{", 400),
        ("POST", PREDICT, b"", 400),
        ("POST", PREDICT, b"\xff", 400),
        ("POST", PREDICT, b'{"instances": ["\\ud83d"]}', 400),
        ("POST", PREDICT, b'{"instances": [NaN]}', 400),
        ("POST", PREDICT, b"[" * 100_000, 400),
        ("POST", PREDICT, b'{"a":' * 100_000, 400),
        ("POST", PREDICT, b"1" * 10_000, 400),
        ("POST", PREDICT, {"instances": [3]}, 400),
        ("POST", PREDICT, {**TEXT, "signature_name": "other"}, 400),
        ("POST", "/v1/models/labels:regress", {"examples": [{"text": "a"}]}, 400),
        ("POST", "/v1/models/toy:classify", {"examples": [{"text": "a"}]}, 400),
        ("POST", "/v1/models/other:predict", TEXT, 404),
        ("POST", "/v1/models/toy/versions/2:predict", TEXT, 404),
        ("POST", "/v1/models/toy/labels/stable:predict", TEXT, 404),
        ("GET", "/v1/models/other", b"", 404),
        ("GET", "/v1/models/toy/versions/9", b"", 404),
        ("GET", "/v1/models/toy/labels/stable", b"", 404),
        ("GET", "/v1/models/toy/labels/1/metadata", b"", 404),
        ("GET", "/v1/models/toy:explain", b"", 404),
        ("GET", "/v1/models/toy/", b"", 404),
        ("POST", PREDICT + "/", TEXT, 404),
        ("GET", "/", b"", 404),
        ("GET", PREDICT, b"", 405),
        ("DELETE", "/v1/models/toy", b"", 405),
        ("POST", PREDICT, b"[" + b"[]," * 300_000 + b"1]", 413),
        ("POST", PREDICT, {"instances": ["a"] * 2049}, 413),
        ("POST", PREDICT, {"instances": [3] * 2049}, 413),  # before each is looked at
        ("POST", PREDICT, {"inputs": {"text": [3] * 2049}}, 413),
        ("POST", "/v1/models/toy:regress", {"examples": [{"text": 3}] * 2049}, 413),
        ("POST", PREDICT, b" " * (17 << 20), 413),
    ],
)
def test_what_is_not_answered_is_told_in_one_sentence(method, path, body, status):
    reply = ask(app_of(), method, path, body)
    assert reply.status == status
    assert list(reply.json()) == ["error"]
    assert "\n" not in reply.json()["error"]
    assert "Traceback" not in reply.json()["error"]


def test_an_unknown_path_is_sent_to_the_list_of_all():
    assert "/openapi.json lists what is there" in ask(app_of(), "GET", "/").json()["error"]
    assert "/openapi.json" not in ask(app_of(), "DELETE", "/v1/models/toy").json()["error"]


def test_openais_faults_have_openais_form():
    reply = ask(app_of(), "POST", "/v1/embeddings", {"model": "vectors", "input": [1, 2]})
    assert reply.status == 400
    assert reply.json()["error"]["type"] == "invalid_request_error"
    assert reply.json()["error"]["param"] == "input"


def test_what_openai_has_and_this_server_has_not_is_told_in_openais_form():
    reply = ask(app_of(), "POST", "/v1/chat/completions", {"model": "vectors"})
    assert reply.status == 404
    assert "/v1/chat/completions" in reply.json()["error"]["message"]


def test_a_body_that_says_it_is_too_large_is_not_read():
    app, headers = app_of(), [("content-length", "9" * 5000)]
    assert ask(app, "POST", PREDICT, b"", headers).status == 413


PACKED = gzip.compress(json.dumps(TEXT).encode(), mtime=0)


@pytest.mark.parametrize(
    ("packing", "packed", "status"),
    [
        ("gzip", PACKED, 200),
        ("X-Gzip", PACKED, 200),
        ("br", PACKED, 415),
        ("gzip, gzip", PACKED, 415),
        ("gzip", PACKED[:-3], 400),
        ("gzip", PACKED[:20] + b"xxx" + PACKED[23:], 400),
        ("gzip", b"{}", 400),
        ("gzip", gzip.compress(bytes(20 << 20), 1), 413),
        ("gzip", gzip.compress(b"", mtime=0) * 2 + PACKED, 200),
        ("gzip", gzip.compress(b"", mtime=0) * 2000 + PACKED, 400),
        ("gzip", PACKED + bytes(512), 200),
        ("gzip", b"", 400),
    ],
    ids=[
        *("whole", "old name", "brotli", "twice", "cut off", "damaged", "not packed", "too large"),
        *("some members", "members without number", "filled up", "nothing"),
    ],
)
def test_a_body_may_be_packed_within_the_bounds_of_others(packing, packed, status):
    reply = ask(app_of(), "POST", PREDICT, packed, [("content-encoding", packing)])
    assert reply.status == status
    assert status == 200 or list(reply.json()) == ["error"]


def test_a_large_answer_is_packed_for_who_wishes_it():
    body, wish = {"instances": ["abc"] * 1000}, [("accept-encoding", "br, gzip")]
    plain, packed = ask(app_of(), "POST", PREDICT, body), ask(app_of(), "POST", PREDICT, body, wish)
    assert gzip.decompress(packed.body) == plain.body
    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.body) < len(plain.body) / 10
    assert "content-encoding" not in plain.headers
    assert "content-encoding" not in ask(app_of(), "POST", PREDICT, TEXT, wish).headers


@pytest.mark.parametrize("packed", ["Identity", ""])
def test_a_body_that_says_it_is_not_packed_is_read(packed):
    assert ask(app_of(), "POST", PREDICT, TEXT, [("content-encoding", packed)]).status == 200


def test_a_slow_body_times_out():
    async def drops():
        for _ in range(100):
            yield b"["
            await asyncio.sleep(0.05)

    app = app_of(read_seconds=0.2)
    reply = asyncio.run(request(app, "POST", PREDICT, chunks=drops()))
    assert reply.status == 408
    assert reply.headers["connection"] == "close"


class Held(ToyAnswerer):
    """Computes nothing until it may go on."""

    def __init__(self, may_go_on):
        super().__init__()
        self.may_go_on = may_go_on

    def compute(self, rows):
        self.may_go_on.wait(5)
        return super().compute(rows)


def test_the_characters_that_wait_for_all_models_are_bounded(monkeypatch):
    monkeypatch.setattr(batching, "_MOST_CHARACTERS", 40_000)
    may_go_on, body = threading.Event(), {"instances": ["a" * 16_400]}
    models = {name: ToyModel({"text": Held(may_go_on)}) for name in ("one", "other")}
    app = make_app(models, ServerConfig())

    async def body_of_test():
        tasks = list[asyncio.Task]()
        for name in ("one", "other", "other"):
            tasks.append(
                asyncio.create_task(request(app, "POST", f"/v1/models/{name}:predict", body))
            )
            for _ in range(50):
                await asyncio.sleep(0)
        refused = tasks[-1].done()
        may_go_on.set()
        statuses = [(await task).status for task in tasks]
        return refused, statuses

    assert asyncio.run(body_of_test()) == (True, [200, 200, 429])


def test_bodies_that_wait_together_are_bounded(monkeypatch):
    monkeypatch.setattr(bodies, "_BODIES_AT_ONCE", 2)

    async def large():
        yield b" " * (16 << 20)
        await asyncio.sleep(0.1)

    async def all_at_once():
        app = app_of()
        return await asyncio.gather(
            *(request(app, "POST", PREDICT, chunks=large()) for _ in range(5))
        )

    statuses = sorted(reply.status for reply in asyncio.run(all_at_once()))
    assert statuses == [400, 400, 429, 429, 429]


def test_more_than_may_wait_is_refused_and_counted():
    app = app_of(ToyAnswerer(seconds=0.05), max_waiting=3)

    async def all_at_once():
        return await asyncio.gather(*(request(app, "POST", PREDICT, TEXT) for _ in range(20)))

    replies = asyncio.run(all_at_once())
    assert sorted({reply.status for reply in replies}) == [200, 429]
    refused = [reply for reply in replies if reply.status == 429]
    assert all(int(reply.headers["retry-after"]) >= 1 for reply in refused)
    figures = ask(app, "GET", "/metrics").body.decode()
    line = f'keras_bert_requests_total{{method="predict",model="toy",status="429"}} {len(refused)}'
    assert line in figures


def test_a_request_that_waits_too_long_is_told_so():
    reply = ask(app_of(ToyAnswerer(seconds=0.5), answer_seconds=0.1), "POST", PREDICT, TEXT)
    assert reply.status == 429
    assert reply.headers["retry-after"] == "1"


def test_a_request_whose_client_goes_away_is_dropped():
    answerer = ToyAnswerer(seconds=0.2)
    app = app_of(answerer)

    async def body():
        gone = asyncio.Event()
        first = asyncio.create_task(request(app, "POST", PREDICT, TEXT))
        await asyncio.sleep(0.05)
        second = asyncio.create_task(request(app, "POST", PREDICT, TEXT, gone=gone))
        await asyncio.sleep(0.02)
        gone.set()
        assert (await second).status == 499
        assert (await first).status == 200

    asyncio.run(body())
    app.state.service.close()
    assert answerer.sizes == [1]


def test_the_key_is_asked_for_everywhere_but_for_health():
    app = app_of(api_key="secret")
    for path in ("/v1/models/toy", "/metrics", "/nowhere"):
        assert ask(app, "GET", path).status == 401
    for wrong in ("secret", "Bearer", "Bearer wrong", "Basic secret", "Bearer sécret"):
        reply = ask(app, "POST", PREDICT, TEXT, [("authorization", wrong)])
        assert reply.status == 401
        assert reply.headers["www-authenticate"] == "Bearer"
    assert ask(app, "POST", PREDICT, TEXT, [("authorization", "Bearer secret")]).status == 200
    for path in ("/healthz", "/readyz"):
        assert ask(app, "GET", path).status == 200


def test_a_server_that_is_about_to_stop_is_not_ready():
    app = app_of()
    app.state.service.stopping = True
    assert ask(app, "GET", "/readyz").status == 503
    assert ask(app, "GET", "/healthz").status == 200


def test_a_server_that_warms_up_answers_and_says_that_it_is_not_ready():
    app = app_of()
    app.state.service.is_warm = False
    assert ask(app, "GET", "/readyz").status == 503
    assert ask(app, "POST", PREDICT, TEXT).status == 200


def test_a_number_that_is_none_is_no_answer():
    app = make_app({"vectors": ToyModel({"embed": ToyVectors(float("nan"))})}, ServerConfig())
    reply = ask(app, "POST", "/v1/models/vectors:predict", TEXT)
    assert reply.status == 500
    assert "finite" in reply.json()["error"]


def test_figures_tell_of_batches_and_tokens():
    app = app_of()
    ask(app, "POST", PREDICT, {"instances": ["abc", "abcd"]})
    figures = ask(app, "GET", "/metrics").body.decode()
    for line in (
        'keras_bert_batch_rows_sum{model="toy",signature="text"} 2.0',
        'keras_bert_tokens_total{model="toy",signature="text"} 7.0',
        'keras_bert_positions_total{model="toy",signature="text"} 8.0',
        'keras_bert_waiting_instances{model="toy",signature="text"} 0.0',
        'keras_bert_request_seconds_count{method="predict",model="toy"} 1.0',
    ):
        assert line in figures


def test_models_are_closed_at_the_end():
    model = ToyModel()
    app = make_app({"toy": model}, ServerConfig())

    async def live():
        async with app.router.lifespan_context(app):
            pass

    asyncio.run(live())
    assert model.closed


@pytest.mark.parametrize("seconds", [0.0, 0.003])
def test_served_answers_are_those_of_one_alone_whatever_comes_beside_them(seconds):
    draws = np.random.default_rng(1)
    texts = ["x" * int(length) for length in draws.integers(1, 80, 200)]
    app = app_of(ToyAnswerer(seconds=seconds))

    async def all_at_once():
        return await asyncio.gather(
            *(request(app, "POST", PREDICT, {"instances": [text]}) for text in texts)
        )

    replies = asyncio.run(all_at_once())
    assert [reply.json()["predictions"] for reply in replies] == [[float(len(t))] for t in texts]


def test_pages_may_stand_beside_it_without_a_key():
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    page = Route("/", lambda request: PlainTextResponse("page"))
    config = ServerConfig(api_key="secret")
    app = make_app({"toy": ToyModel()}, config, routes=[page], open_paths=["/"])
    assert ask(app, "GET", "/").body == b"page"
    assert ask(app, "GET", "/metrics").status == 401


def test_what_a_model_cannot_tell_is_an_error_of_the_server(caplog):
    model = SimpleNamespace(answerers={"text": ToyAnswerer()}, description={}, close=lambda: None)
    model.answerers["text"].compute = lambda rows: 1 / 0
    reply = ask(make_app({"toy": model}, ServerConfig()), "POST", PREDICT, TEXT)
    assert reply.status == 500
    assert reply.json() == {"error": "the model failed at this request; the server's log says why."}
    assert "ZeroDivisionError" in caplog.text
