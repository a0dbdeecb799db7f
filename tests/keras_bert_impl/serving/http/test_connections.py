"""Clients that mean no good, with real sockets."""

import socket
import time

import pytest

from tests.support.served import read_all, served_toy

HEAD = b"POST /v1/models/toy:predict HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture(scope="module")
def server():
    with served_toy(read_seconds=1, idle_seconds=1, max_connections=300) as running:
        yield running
        assert "Traceback" not in running.log
        assert running.stop() == 0


def status_of(reply):
    return int(reply.split(b" ", 2)[1]) if reply else None


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (HEAD + b"Content-Length: -1\r\n\r\n", 400),
        (HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: \x00\r\n\r\n", 400),
        (b"CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 404),
        (b"GET /" + b"a" * 70_000, 400),
        (b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 20_000, 400),
        (b"GET / HTTP/1.1\r\nHo", 408),
        (HEAD + b"Content-Length: 9\r\n\r\n{", 408),
        (HEAD + b"Content-Length: 99999999999\r\n\r\n{", 413),
    ],
)
def test_each_is_answered_and_cut(server, sent, status):
    started = time.monotonic()
    assert status_of(server.send([sent])) == status
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    "sent",
    [
        b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}2\r\n",
        b"Transfer-Encoding: gzip\r\n\r\n{}",
    ],
)
def test_a_body_that_is_none_is_answered_and_cut(server, sent):
    reply = server.send([HEAD + sent])
    assert status_of(reply) == 400
    assert reply.count(b"HTTP/1.1") == 1


def test_what_is_no_http_behind_whole_requests_does_not_take_their_answers(server):
    body = b'{"instances": ["abc"]}'
    one = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    for behind in (b"\x00\x01\r\n\r\n", HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"):
        reply = server.send([one * 3 + behind])
        assert reply.count(b"HTTP/1.1 200") == reply.count(b"[3.0]") == 3


@pytest.mark.parametrize("pieces", [1, 40])
def test_the_wish_for_another_protocol_is_not_heard(server, pieces):
    """Java's client wishes for HTTP/2 in its first request; then its body comes as always."""
    body = b'{"instances": ["abc"]}'
    wish = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    length = b"Content-Length: %d\r\n\r\n" % len(body)
    sent = (HEAD + wish + length + body) * 2 + HEAD + length + body
    size = -(-len(sent) // pieces)
    reply = server.send([sent[at : at + size] for at in range(0, len(sent), size)], pause=0.01)
    assert reply.count(b"HTTP/1.1 200") == reply.count(b"[3.0]") == 3
    chunked = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    assert b"[3.0]" in server.send([HEAD + wish + chunked])


def test_a_request_cannot_hide_behind_the_wish_for_another_protocol(server):
    hidden = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    wish = b"Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: %d\r\n\r\n" % len(hidden)
    reply = server.send([HEAD + wish, hidden], pause=0.1)
    assert status_of(reply) == 400
    assert b"alive" not in reply


def test_a_head_in_slow_drops_times_out_in_spite_of_them(server):
    started = time.monotonic()
    reply = server.send([b"G", *([b"E"] * 30)], pause=0.1)
    assert status_of(reply) in (400, 408, None)
    assert time.monotonic() - started < 8


def test_a_request_that_comes_in_one_piece_is_no_large_head(server):
    length = 200_000
    body = b'{"instances": ["%s"]}' % (b"a" * length)
    head = HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    reply = server.send([head + body])
    assert reply.endswith(b"[%d.0]}" % length)


def test_an_idle_connection_is_closed(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        assert status_of(read_all(connection)) == 408


def test_requests_in_one_go_are_answered_in_their_order(server):
    body = b'{"instances": ["%s"]}'
    one = HEAD + b"Content-Length: %d\r\n\r\n"
    sent = b""
    for length in (1, 2, 3):
        text = body % (b"a" * length)
        sent += one % len(text) + text
    reply = server.send([sent])
    places = [reply.index(b"[%d.0]" % length) for length in (1, 2, 3)]
    assert places == sorted(places)


def test_connections_without_number_are_cut_and_others_are_served_again(server):
    held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(400)]
    time.sleep(0.3)
    for connection in held:
        connection.close()
    time.sleep(0.3)
    assert server.ask("GET", "/healthz")[0] == 200


def test_a_client_that_sends_too_much_reads_that_it_is_too_much(server):
    status, _, body = server.ask("POST", "/v1/models/toy:predict", b" " * (20 << 20))
    assert (status, body) == (413, b'{"error":"the body has more than 16 MiB; send it in parts."}')


def test_a_client_that_reads_no_answer_is_cut(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        for _ in range(40):
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)
            time.sleep(0.005)
        # On a busy machine it takes a while to fill what is between the two.
        assert any(_is_cut(connection) for _ in range(600))
    assert "the answer (200) was cut off" in server.log


def test_a_client_that_reads_slowly_has_all_of_its_answer(server):
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 10)
        connection.settimeout(10)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        started, got = time.monotonic(), 0
        while part := connection.recv(256 << 10):
            got += len(part)
            time.sleep(len(part) / 6e6)
    assert got > 12 << 20
    assert time.monotonic() - started > 2  # and a connection may be silent for one second


def _is_cut(connection):
    time.sleep(0.1)
    try:
        connection.sendall(b"\r\n")
    except ConnectionError:
        return True
    return False


def test_expect_continue_is_answered(server):
    body = b'{"instances": ["abc"]}'
    head = HEAD + b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % len(body)
    reply = server.send([head, body], pause=0.1)
    assert reply.startswith(b"HTTP/1.1 100")
    assert b"[3.0]" in reply
