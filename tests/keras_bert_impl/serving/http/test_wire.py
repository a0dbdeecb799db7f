"""Who may ask, by what name, from which page; and what a request leaves behind."""

import asyncio
import contextlib
import json
import os

import pytest

from keras_bert_impl.serving.http.app import make_app
from keras_bert_impl.serving.http.config import ServerConfig
from keras_bert_impl.serving.http.wire import TAKEN
from tests.support.asgi_client import Reply, ask
from tests.support.toy_answerer import ToyAnswerer, ToyModel

PREDICT = "/v1/models/toy:predict"
TEXT = {"instances": ["abc"]}
ELSEWHERE = {"host": "0.0.0.0"}
PAGE = "https://page.example"


def app_of(answerer=None, **config):
    return make_app({"toy": ToyModel({"text": answerer or ToyAnswerer()})}, ServerConfig(**config))


def lines_of(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize(
    ("config", "headers", "status"),
    [
        ({}, {"host": "localhost:8501"}, 200),
        ({}, {"host": "127.0.0.2"}, 200),
        ({}, {"host": "[::1]:8501"}, 200),
        ({}, {}, 200),  # HTTP/1.0
        ({}, {"host": "evil.example:8501"}, 403),
        ({}, {"host": "evil.example", "origin": "http://evil.example"}, 403),
        ({}, {"host": "localhost.evil.example"}, 403),
        ({}, {"host": "["}, 403),
        ({}, {"host": "localhost.:8501"}, 200),
        ({"allowed_hosts": ("bert.example.",)}, {"host": "bert.example"}, 200),
        ({"allowed_hosts": ("2001:DB8:0::1",)}, {"host": "[2001:db8::1]:8501"}, 200),
        ({"allowed_hosts": ("*",)}, {"host": "a@b.example"}, 403),
        ({}, {"host": "localhost/a"}, 403),
        ({}, {"host": "localhost#"}, 403),
        ({"allowed_hosts": ("Bert.example",)}, {"host": "bert.example:443"}, 200),
        ({"allowed_hosts": ("bert.example",)}, {"host": "other.example"}, 403),
        ({"allowed_hosts": ("*",)}, {"host": "other.example"}, 200),
        (ELSEWHERE, {"host": "any.example"}, 200),
        ({**ELSEWHERE, "allowed_hosts": ("bert.example",)}, {"host": "any.example"}, 403),
        ({**ELSEWHERE, "allowed_hosts": ("bert.example",)}, {"host": "127.0.0.1"}, 200),
        # curl -d says that its JSON is a form.
        ({}, {"content-type": "application/x-www-form-urlencoded"}, 200),
        ({}, {"host": "localhost:1", "origin": "http://localhost:1"}, 200),
        ({}, {"host": "localhost:443", "origin": "https://localhost"}, 200),
        ({}, {"host": "localhost:1", "origin": "http://localhost:2"}, 403),
        ({}, {"host": "localhost", "origin": PAGE, "content-type": "text/plain"}, 403),
        ({}, {"host": "localhost", "origin": "null"}, 403),
        ({}, {"sec-fetch-site": "cross-site"}, 403),
        ({}, {"sec-fetch-site": "cross-site", "sec-fetch-dest": "document"}, 403),
        ({}, {"sec-fetch-site": "none"}, 200),
        # A proxy may call the server by another name than browsers do.
        ({}, {"host": "localhost", "origin": PAGE, "sec-fetch-site": "same-origin"}, 200),
        ({"allowed_origins": (PAGE,)}, {"origin": PAGE, "sec-fetch-site": "cross-site"}, 200),
        ({"allowed_origins": (PAGE,)}, {"host": "localhost", "origin": "https://b.example"}, 403),
        ({"allowed_origins": (f"{PAGE}:443",)}, {"host": "localhost", "origin": PAGE}, 200),
        ({"allowed_origins": ("*",)}, {"origin": "https://b.example"}, 200),
    ],
)
def test_names_and_pages_that_may_ask(config, headers, status):
    reply = ask(app_of(**config), "POST", PREDICT, TEXT, headers.items())
    assert reply.status == status
    assert status == 200 or list(reply.json()) == ["error"]


def test_a_foreign_page_may_lead_here_and_read_nothing():
    headers = {"host": "localhost", "sec-fetch-site": "cross-site"}
    assert ask(app_of(), "GET", "/v1/models", b"", headers.items()).status == 403
    headers["sec-fetch-dest"] = "document"
    assert ask(app_of(), "GET", "/v1/models", b"", headers.items()).status == 200
    # Whoever watches whether the server lives may call it by any name.
    assert ask(app_of(), "GET", "/readyz", b"", [("host", "10.0.0.7:8501")]).status == 200


def test_an_allowed_page_asks_first_without_the_key_and_reads_faults_too():
    app = app_of(allowed_origins=(PAGE,), api_key="secret")
    asked = {
        "origin": PAGE,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type,x-stainless-lang",
    }
    reply = ask(app, "OPTIONS", PREDICT, b"", asked.items())
    assert reply.status == 200
    assert reply.headers["access-control-allow-origin"] == PAGE
    assert "x-stainless-lang" in reply.headers["access-control-allow-headers"]
    for path, key, status in (
        (PREDICT, "wrong", 401),
        (PREDICT, "secret", 200),
        ("/v1/models/no:predict", "secret", 404),
    ):
        headers = {"origin": PAGE, "authorization": f"Bearer {key}"}
        reply = ask(app, "POST", path, TEXT, headers.items())
        assert (reply.status, reply.headers["access-control-allow-origin"]) == (status, PAGE)
        assert "X-Request-ID" in reply.headers["access-control-expose-headers"]
    foreign = {**asked, "origin": "https://b.example"}
    reply = ask(app, "OPTIONS", PREDICT, b"", foreign.items())
    assert (reply.status, [*reply.json()]) == (403, ["error"])
    assert "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize(
    ("given", "kept"), [("a-1/b", True), ("", False), ("x" * 129, False), ("a b", False)]
)
def test_an_id_that_is_sane_comes_back_and_others_are_made(given, kept):
    for path in ("/healthz", "/nowhere"):
        got = ask(app_of(), "GET", path, b"", [("x-request-id", given)]).headers["x-request-id"]
        assert (got == given) is kept
        assert len(got) == (len(given) if kept else 32)


def test_refused_requests_are_counted():
    app = app_of(api_key="secret")
    ask(app, "POST", PREDICT, TEXT)
    ask(app, "POST", PREDICT, TEXT, [("host", "evil.example")])
    figures = ask(app, "GET", "/metrics", b"", [("authorization", "Bearer secret")]).body.decode()
    for status in (401, 403):
        line = f'requests_total{{method="refused",model="",status="{status}"}} 1.0'
        assert line in figures


def test_each_request_leaves_a_line_and_no_text_and_a_moved_file_begins_anew(tmp_path):
    file = tmp_path / "access.jsonl"
    app = app_of(access_log=str(file))
    ask(app, "POST", PREDICT, TEXT, [("x-request-id", "one")])
    ask(app, "GET", "/nowhere")
    first, second = lines_of(file)
    assert {"time", "seconds"} < set(first)
    assert "abc" not in file.read_text()
    shared = {"method": "POST", "path": PREDICT, "status": 200, "client": "127.0.0.1"}
    assert {"request_id": "one", "bytes": 21, **shared}.items() <= first.items()
    assert (second["path"], second["status"]) == ("/nowhere", 404)
    file.rename(tmp_path / "access.jsonl.1")
    ask(app, "GET", "/healthz")
    assert len(lines_of(file)) == 1


def test_a_full_disk_is_told_once_and_ends_nothing(caplog):
    app = app_of(access_log="/dev/full")
    assert {ask(app, "GET", "/healthz").status for _ in range(3)} == {200}
    assert caplog.text.count("No space left") == 1


def test_nobody_waits_for_whoever_reads_no_line_of_standard_output(caplog, capfd):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(writer, bytes(4096)):
            pass
    os.set_blocking(writer, True)
    app = app_of(access_log="-")
    with capfd.disabled():
        before = os.dup(1)
        os.dup2(writer, 1)
        try:
            refused = {ask(app, "GET", "/healthz").status for _ in range(3)}
            while len(os.read(reader, 1 << 20)) == 1 << 20:
                pass
            ask(app, "GET", "/readyz")
            line = os.read(reader, 4096)
        finally:
            os.dup2(before, 1)
            for one in (before, reader, writer):
                os.close(one)
    assert refused == {200}
    assert caplog.text.count("the access log lacks requests") == 1
    assert json.loads(line)["path"] == "/readyz"


def test_a_failure_is_told_with_its_id(caplog):
    app = app_of(ToyAnswerer())
    route = next(one for one in app.router.routes if one.path == "/v1/embeddings")
    route.app = None  # a mistake of ours
    reply = ask(app, "POST", "/v1/embeddings", TEXT, [("x-request-id", "one")])
    assert (reply.status, reply.headers["x-request-id"]) == (500, "one")
    assert "request one failed" in caplog.text
    assert "Traceback" in caplog.text


def test_an_answer_that_nobody_took_is_none(tmp_path, caplog):
    app, file = app_of(access_log=str(tmp_path / "log")), tmp_path / "log"

    async def not_taken():
        return False

    async def one():
        scope = {"type": "http", "method": "POST", "path": PREDICT, "headers": []}
        scope |= {"query_string": b"", "state": {TAKEN: not_taken}}
        bodies, sent = [json.dumps(TEXT).encode()], []

        async def receive():
            if not bodies:
                await asyncio.Event().wait()
            return {"type": "http.request", "body": bodies.pop(), "more_body": False}

        async def send(message):
            sent.append(message)

        await app(scope, receive, send)
        return Reply(sent)

    assert asyncio.run(one()).status == 200
    assert lines_of(file)[0]["status"] == 499
    assert "was cut off" in caplog.text
    assert 'model="toy",status="499"} 1.0' in ask(app, "GET", "/metrics").body.decode()
