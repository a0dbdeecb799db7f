"""Sends a server what no client would.

`python -m tests.support.hostile_http --cases=10000 --seed=1` attacks a server of its own. Each
request is drawn from (seed, number): broken JSON, huge texts, wrong types, NaN, deep nesting, half
a body, slow writers, odd encodings, many headers, two lengths, chunks that are none, or bytes. Each
must be answered with a status that is expected of it, or be cut; the server must live, say nothing
of a traceback, answer nothing with 500, and stop with 0. The exit code is 1 otherwise.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import json
import random
import socket
import sys
import time

from tests.fuzz.hostile_values import hostile_value
from tests.support.served import read_all, served_toy

EXPECTED = {200, 400, 401, 404, 405, 408, 411, 413, 415, 417, 429, 431, 501, 505}
_AT_ONCE = 64
_SECONDS = 25
_PATHS = (
    "/v1/models/toy:predict",
    "/v1/models/toy:regress",
    "/v1/models/toy:classify",
    "/v1/models/toy",
    "/v1/models/toy/metadata",
    "/v1/models/toy/versions/1:predict",
    "/v1/embeddings",
    "/v1/models",
    "/metrics",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/v1/models/%00:predict",
    "/v1/models/" + "a" * 3000 + ":predict",
    "/v1/models/toy:predict?" + "&".join("a=b" for _ in range(500)),
    "//",
    "/v1/models/\u202etoy",
)


def near_body(draw):
    """Nearly what a request is: one part of it is something else."""
    good = [
        {"instances": [{"text": "a"}], "signature_name": "text"},
        {"inputs": {"text": ["a", "b"]}},
        {"examples": [{"text": ["a"]}], "context": {}},
        {"model": "toy", "input": ["a"], "encoding_format": "float"},
    ]
    body = draw.choice(good)
    body[draw.choice([*body, "more"])] = hostile_value(draw)
    return json.dumps(body, ensure_ascii=draw.random() < 0.5).encode("utf-8", "surrogatepass")


def body(draw):
    """The bytes of a body."""
    kind = draw.randrange(10)
    if kind < 4:
        return near_body(draw)
    if kind == 4:
        text = near_body(draw)
        cut = draw.randrange(len(text))
        return text[:cut] + bytes(draw.choices(range(256), k=3)) + text[cut:]
    if kind == 5:
        opened = draw.choice([b"[", b'{"a":', b'[{"instances":', b"[[]", b'"'])
        return opened * draw.randrange(1, 60_000)
    if kind == 6:
        return b'{"instances": ["' + b"x" * draw.randrange(2_000_000) + b'"]}'
    if kind == 7:
        codec = draw.choice(["utf-16", "utf-32", "utf-7", "latin-1", "utf-8-sig"])
        return '{"instances": ["é"]}'.encode(codec)
    if kind == 8:
        return b"[" + b"{}," * draw.randrange(1000, 250_000) + b"1]"
    return bytes(draw.choices(range(256), k=draw.randrange(300)))


def head(draw, length):
    """The bytes of a head; most are right, so that what follows counts."""
    method = draw.choice(["POST"] * 12 + ["GET", "PUT", "DELETE", "HEAD", "PATCH", "BREW", "p"])
    version = draw.choice(["1.1"] * 20 + ["1.0", "2.0", "9.9", "x"])
    lines = [f"{method} {draw.choice(_PATHS)} HTTP/{version}", "Host: localhost"]
    wrong = [str(length + 5), "99999999", "-1", "1e3", "9" * 30, "", "0x10", "+3"]
    lines.append(f"Content-Length: {draw.choice([str(length)] * 20 + wrong)}")
    more = [
        "Content-Length: 3",
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked",
        "Content-Encoding: gzip",
        "Content-Encoding: br",
        "Expect: 100-continue",
        "Connection: upgrade\r\nUpgrade: websocket",
        "Connection: upgrade\r\nUpgrade: h2c",
        "Authorization: Bearer \xff\xfe",
        "X: " + "y" * draw.randrange(80_000),
        "\r\n".join(f"X{n}: y" for n in range(draw.randrange(6000))),
        ": nothing",
        "X\x00: y",
        "Content-Type: text/html; charset=utf-7",
        "Connection: close",
    ]
    if draw.random() < 0.4:
        lines.insert(draw.randrange(1, len(lines) + 1), draw.choice(more))
    return "\r\n".join(lines).encode("utf-8", "surrogatepass") + b"\r\n\r\n"


def request(seed, number):
    """Parts of a hostile request, the seconds between them, and whether the sender closes."""
    draw = random.Random(f"{seed}/{number}")
    kind = draw.randrange(20)
    content = body(draw)
    whole = head(draw, len(content)) + content
    if kind == 0:  # half of it, and then nothing
        return [whole[: draw.randrange(len(whole))]], 0, draw.random() < 0.5
    if kind == 1:  # in slow drops
        return [bytes([byte]) for byte in whole[:25]], 0.1, False
    if kind == 2:  # chunks that are none
        chunks = draw.choice(
            [b"5\r\nabc", b"zz\r\n", b"ffffffffffffffff\r\nx", b"-1\r\n", b"0\r\n"]
        )
        start = b"POST /v1/models/toy:predict HTTP/1.1\r\nHost: localhost\r\n"
        return [start + b"Transfer-Encoding: chunked\r\n\r\n", chunks], 0, True
    if kind == 3:
        return [bytes(draw.choices(range(256), k=draw.randrange(1, 3000)))], 0, True
    if kind == 4:  # several in one go
        return [whole * draw.randrange(2, 5)], 0, True
    return [whole], 0, draw.random() < 0.2


def outcome(port, seed, number):
    """What comes of a request: the statuses that were sent back, or "cut"; or what is wrong."""
    parts, pause, ends = request(seed, number)
    got, started = b"", time.monotonic()
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_SECONDS) as connection:
            with contextlib.suppress(OSError):  # the server has closed already
                for part in parts:
                    connection.sendall(part)
                    time.sleep(pause)
                if ends:
                    connection.shutdown(socket.SHUT_WR)
            got = read_all(connection)
    except TimeoutError:
        return f"case {number}: neither answered nor cut after {time.monotonic() - started:.0f} s"
    except ConnectionError as error:
        return f"case {number}: {error}"
    if not got:
        return "cut"
    status = got.split(b" ", 2)[1:2]
    code = int(status[0]) if status and status[0].isdigit() else 0
    if code == 100:
        return "100"
    if not got.startswith(b"HTTP/1.1 ") or code not in EXPECTED:
        return f"case {number}: answered {got[:80]!r}"
    for secret in (b"Traceback", b"/site-packages", b"keras_bert_impl/", b"root:"):
        if secret in got:
            return f"case {number}: the answer tells {secret!r}"
    return str(code)


def attack(server, cases, seed):
    """Sends requests, many at a time; gives how often each outcome came."""
    counts = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        asked = [pool.submit(outcome, server.port, seed, number) for number in range(cases)]
        for one in concurrent.futures.as_completed(asked):
            counts[one.result()] += 1
    return counts


def findings(cases, seed):
    """What an attack gave: (outcomes, what is wrong, bytes before and after)."""
    with served_toy(read_seconds=2, idle_seconds=1) as server:
        before, _ = server.memory()
        counts = attack(server, cases, seed)
        wrong = [words for words in counts if words.startswith("case")]
        status, _, got = server.ask("POST", _PATHS[0], b'{"instances": ["abc"]}')
        if (status, got) != (200, b'{"predictions":[3.0]}'):
            wrong.append(f"afterwards it answers {status}, {got[:80]!r}")
        after, _ = server.memory()
        code = server.stop()
        if code:
            wrong.append(f"it stops with {code}")
        if "Traceback" in server.log:
            wrong.append(f"it logs: {server.log[-2000:]}")
    return counts, wrong, before, after


def main():
    """The command; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    started = time.monotonic()
    counts, wrong, before, after = findings(given.cases, given.seed)
    for words, count in counts.most_common():
        sys.stdout.write(f"{count:7} {words}\n")
    sys.stdout.write(
        f"{given.cases} cases in {time.monotonic() - started:.0f} s; memory {before / 1e6:.0f} MB "
        f"before, {after / 1e6:.0f} MB after\n"
    )
    for words in wrong:
        sys.stdout.write(f"wrong: {words}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
