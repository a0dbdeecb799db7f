"""A server's life: where it listens, how it stops, what it does under load."""

import asyncio
import collections
import concurrent.futures
import contextlib
import json
import resource
import signal
import socket
import ssl
import time

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.http.server import listen
from tests.support.served import CERTIFICATE, KEY, served_toy

PREDICT = "/v1/models/toy:predict"
TEXT = json.dumps({"instances": ["abc"]})


def test_a_port_in_use_is_one_sentence():
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"`port={port}`: Address already in use"):
            listen("127.0.0.1", port)


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid", "\ud83d", "a" * 300])
def test_an_address_of_another_machine_is_one_sentence(host):
    with pytest.raises(UserError, match="name an address of this machine"):
        listen(host, 0)


@pytest.mark.usefixtures("keyboard")
def test_a_stop_finishes_what_was_begun_and_takes_nothing_more():
    with served_toy(seconds=1.0) as server, concurrent.futures.ThreadPoolExecutor(4) as pool:
        idle = socket.create_connection(("127.0.0.1", server.port))
        asked = [pool.submit(server.ask, "POST", PREDICT, TEXT) for _ in range(4)]
        time.sleep(0.4)
        server.process.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        with pytest.raises(ConnectionError):
            server.ask("GET", "/readyz")
        assert {one.result()[0] for one in asked} == {200}
        assert server.process.wait(20) == 0
        assert "Traceback" not in server.log
        assert "Stopped; what was begun is answered." in server.log
        idle.close()


def ask_on(server):
    for _ in range(1000):
        server.ask("GET", "/readyz")
        time.sleep(0.01)


@pytest.mark.usefixtures("keyboard")
def test_a_second_ctrl_c_ends_it_at_once():
    with served_toy(seconds=20.0) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            head = (
                f"POST {PREDICT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(TEXT)}\r\n\r\n"
            )
            connection.sendall((head + TEXT).encode())
            time.sleep(0.4)
            server.process.send_signal(signal.SIGINT)
            with pytest.raises(ConnectionError):  # two signals that wait together are one
                ask_on(server)
            assert server.stop(signal.SIGINT, 5) == 130
        assert "Traceback" not in server.log


def test_a_stop_waits_for_no_client_for_ever():
    secure = ssl.create_default_context(cafile=CERTIFICATE)
    settings = {"certfile": CERTIFICATE, "keyfile": KEY, "stop_seconds": 1, "read_seconds": 60}
    with served_toy(**settings) as server, contextlib.ExitStack() as stack:
        assert "https://" in server.log
        heads = (f"POST {PREDICT} HTTP/1.1\r\nContent-Length: 99", "GET /large HTTP/1.1")
        for head in heads:  # one sends no body, and one reads no answer
            plain = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            connection = secure.wrap_socket(plain, server_hostname="localhost")
            stack.enter_context(connection)
            connection.sendall(f"{head}\r\nHost: localhost\r\n\r\n".encode())
        time.sleep(0.3)
        started = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - started < 10
        assert "Traceback" not in server.log
        assert "of the requests that were begun 2 were cut off" in server.log


def test_a_handshake_that_never_comes_has_the_time_of_a_head():
    settings = {"certfile": CERTIFICATE, "keyfile": KEY, "read_seconds": 1}
    with served_toy(**settings) as server, contextlib.ExitStack() as stack:
        address = "127.0.0.1", server.port
        silent = stack.enter_context(socket.create_connection(address, timeout=20))
        assert silent.recv(1) == b""


async def many_at_once(port, count):
    """The statuses of requests on as many connections, all open at the same time."""
    request = f"POST {PREDICT} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: "
    request = f"{request}{len(TEXT)}\r\n\r\n{TEXT}".encode()

    async def one():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        reply = await reader.read()
        writer.close()
        return int(reply.split(b" ", 2)[1])

    return collections.Counter(await asyncio.gather(*(one() for _ in range(count))))


@pytest.mark.slow
def test_thousands_of_requests_at_once_are_answered_or_told_to_come_back():
    """A server with a model has some 300 MB; what connections take is bounded without it, too."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with served_toy(seconds=0.05, max_waiting=500) as server:
        before, _ = server.memory()
        statuses = asyncio.run(many_at_once(server.port, 2000))
        assert set(statuses) <= {200, 429}
        assert statuses[200] >= 500
        assert statuses.total() == 2000
        _, highest = server.memory()
        assert highest - before < 250e6
        assert server.ask("POST", PREDICT, TEXT)[0] == 200
        assert server.stop() == 0
        assert "Traceback" not in server.log
