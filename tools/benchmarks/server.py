"""Compares HTTP servers of vectors under load: many clients at once, and one alone.

Every server is a command that is started once; {port} in it is where it shall listen. It is given
texts of mixed lengths, one a request, in OpenAI's form at /v1/embeddings. The load comes from wrk,
whose own processor time is shown. Servers take turns, round after round, and those whose turn it is
not are stopped meanwhile (SIGSTOP). Answers with status 429 and with any other are counted apart.

With --greedy so many clients send requests of 2,048 texts instead, and one client sends single
texts: alone, and beside them. The table has the time of its answers, the median of the batches of
the greedy clients by /metrics, and how much of their own pace they keep beside the small client.

It needs psutil and wrk (Debian's package of that name; not with --greedy). Traffic goes to this
machine only.

Examples:
  python -m tools.benchmarks.server --input_file=lines.txt --seconds=20
      --server='ours=keras-bert serve --model=minilm --engine=openvino --port={port}'
      --server='infinity=infinity_emb v2 --model-id minilm --url-prefix /v1 --port {port}'
"""

import contextlib
import http.client
import itertools
import json
import math
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_impl.errors import UserError
from keras_bert_impl.options import REQUIRED, Options, option
from keras_bert_impl.serving.http.server import listen
from tools.benchmarks.measuring import LeftOutError, in_turns, last_line, report, spread_texts
from tools.config_flags import ConfigFlags

_SECONDS_TO_START = 180
_GREEDY_TEXTS = 2048
_BUCKET = re.compile(r'keras_bert_batch_seconds_bucket{.*le="([^"]+)".*} (\S+)')
_SCRIPT = """
local bodies, at = {}, 0
local threads = {}
good, refused, other = 0, 0, 0
function setup(thread) table.insert(threads, thread) end
function init(args)
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/json"
  for line in io.lines(args[1]) do
    bodies[#bodies + 1] = wrk.format(nil, nil, nil, line)
  end
end
function request() at = at % #bodies + 1; return bodies[at] end
function response(status)
  if status == 200 then good = good + 1
  elseif status == 429 then refused = refused + 1
  else other = other + 1 end
end
function done(summary, latency, requests)
  local g, r, o = 0, 0, 0
  for _, thread in ipairs(threads) do
    g = g + thread:get("good"); r = r + thread:get("refused"); o = o + thread:get("other")
  end
  local e = summary.errors
  io.write(string.format(
    '{"good":%d,"refused":%d,"other":%d,"lost":%d,"seconds":%f,"p50":%f,"p99":%f}\\n', g, r, o,
    e.connect + e.read + e.write + e.timeout, summary.duration / 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
"""


@dataclass(frozen=True, kw_only=True)
class ServerBenchmarkConfig(Options):
    """The options of the comparison."""

    server: tuple[str, ...] = option(
        (), "NAME=COMMAND of a server; {port} is its port. Repeat it for others.", repeated=True
    )
    input_file: str = option(REQUIRED, "UTF-8 text, one text a line; texts are spread over it.")
    model_name: str = option("minilm", "What requests call the model.")
    num_texts: int = option(2000, "How many different texts are sent.", at_least=1)
    clients: int = option(500, "Clients at once; each sends on when it has its answer.", at_least=1)
    seconds: int = option(20, "How long each turn takes.", at_least=1)
    rounds: int = option(3, "How often servers take turns.", at_least=1)
    alone: bool = option(True, "Measure one client alone, too.")
    greedy: int = option(
        0, "Measure a small client beside so many with 2,048 texts a request.", at_least=0
    )


FLAGS = ConfigFlags(__doc__, ServerBenchmarkConfig)


class Server:
    """A server under test."""

    def __init__(self, words: str, config: ServerBenchmarkConfig) -> None:
        self.name, _, command = words.partition("=")
        if not command:
            raise UserError(f"`server={words}`: write NAME=COMMAND.")
        self.config = config
        with listen("127.0.0.1", 0) as free:
            self.port = free.getsockname()[1]
        self._log = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            shlex.split(command.replace("{port}", str(self.port))),
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        self._await()
        self._signal(signal.SIGSTOP)

    def _await(self) -> None:
        until = time.monotonic() + _SECONDS_TO_START
        while time.monotonic() < until and self._process.poll() is None:
            if self._embed():
                return
            time.sleep(0.2)
        reason = last_line(self._log)  # before it says that it ends
        self.end()
        raise UserError(f"{self.name}: does not start ({reason}).")

    def _embed(self) -> bool:
        """Asks for the vector of a text; whether it came."""
        with contextlib.suppress(OSError, http.client.HTTPException, KeyError, ValueError):
            with contextlib.closing(self._connection()) as connection:
                answer = json.loads(_posted(connection, body_of(self.config, "a"))[1])
            return bool(answer["data"][0]["embedding"])
        return False

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)

    def beside_greedy(self, texts: Sequence[str]) -> dict[str, float]:
        """Measures a small client alone, greedy clients alone, and both at once."""
        with self._running():
            alone, _, refused = self._phase(texts, 0, small=True)
            before = self._batches()
            _, own_pace, _ = self._phase(texts, self.config.greedy, small=False)
            if not own_pace:
                raise LeftOutError(f"none of {_GREEDY_TEXTS} texts at once was answered")
            batch = _median_of(before, self._batches())
            beside, pace, more = self._phase(texts, self.config.greedy, small=True)
        return {
            "p50 alone": alone[0],
            "p99 alone": alone[1],
            "p50 beside": beside[0],
            "p99 beside": beside[1],
            "batch, ms": batch,
            "texts/s": own_pace,
            "kept": pace / own_pace,
            "refused": refused + more,
        }

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        """Inside the block the server runs."""
        self._signal(signal.SIGCONT)
        try:
            yield
        finally:
            self._embed()  # so that it finishes what clients that are gone have asked, if it does
            self._signal(signal.SIGSTOP)

    def _phase(
        self, texts: Sequence[str], greedy: int, *, small: bool
    ) -> tuple[tuple[float, float], float, int]:
        """The small client's p50 and p99 in ms, the greedy ones' texts a second, and refusals."""
        began, refused = time.monotonic(), list[float]()
        own, many = list[tuple[float, float]](), list[tuple[float, float]]()

        def send(bodies: Sequence[bytes], done: list[tuple[float, float]]) -> None:
            with contextlib.closing(self._connection()) as connection:
                for body in itertools.cycle(bodies):
                    started = time.monotonic()
                    if started > began + self.config.seconds:
                        return
                    try:
                        is_answered = _posted(connection, body)[0] == 200
                    except (OSError, http.client.HTTPException):
                        is_answered = False
                        connection.close()  # the next request opens it again
                    if is_answered:
                        done.append((started, time.monotonic()))
                    else:
                        refused.append(started)
                        time.sleep(0.1)

        large = [body_of(self.config, [*itertools.islice(itertools.cycle(texts), _GREEDY_TEXTS)])]
        singles = [body_of(self.config, text) for text in texts]
        jobs = [(large, many)] * greedy + [(singles, own)] * small
        with ThreadPoolExecutor(len(jobs)) as pool:
            for job in [pool.submit(send, *job) for job in jobs]:
                job.result()
        pace = len(many) * _GREEDY_TEXTS / (max(end for _, end in many) - began) if many else 0.0
        p50, p99 = np.percentile([1000 * (end - start) for start, end in own] or [0.0], [50, 99])
        return (float(p50), float(p99)), pace, len(refused)

    def _batches(self) -> dict[float, float]:
        """How many batches took at most so many seconds; of a server without such figures none."""
        with contextlib.closing(self._connection()) as connection:
            connection.request("GET", "/metrics")
            found = _BUCKET.findall(connection.getresponse().read().decode())
        counts = defaultdict[float, float](float)
        for most, count in found:
            counts[float(most)] += float(count)
        return counts

    def turn(self, clients: int, bodies: Path) -> dict[str, float]:
        """Loads the server with clients for a while.

        `429` and `other` count answers of that and of another status (and connections that failed),
        `load, s` and `server, s` are processor time of the load generator and of the server.
        """
        with self._running():
            before, spent = self._processor_seconds(), _children_seconds()
            found = _wrk(self.port, clients, self.config.seconds, bodies)
            load, server = _children_seconds() - spent, self._processor_seconds() - before
            megabytes = sum(one.memory_info().rss for one in self._members()) / 1e6
        return {
            "answers/s": found["good"] / found["seconds"],
            "p50, ms": found["p50"],
            "p99, ms": found["p99"],
            "429": found["refused"],
            "other": found["other"] + found["lost"],
            "load, s": load,
            "server, s": server,
            "a CPU-s": found["good"] / max(server, 0.01),
            "MB": megabytes,
        }

    def _members(self) -> list[Any]:
        import psutil

        first = psutil.Process(self._process.pid)
        return [first, *first.children(recursive=True)]

    def _processor_seconds(self) -> float:
        return sum(sum(one.cpu_times()[:2]) for one in self._members())

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def end(self) -> None:
        self._signal(signal.SIGCONT)
        self._signal(signal.SIGTERM)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._process.wait()


def _posted(connection: http.client.HTTPConnection, body: bytes) -> tuple[int, bytes]:
    connection.request("POST", "/v1/embeddings", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, response.read()


def _median_of(before: dict[float, float], after: dict[float, float]) -> float:
    """The median of a histogram's growth in ms, as Prometheus interpolates it.

    Example:
        >>> _median_of({0.5: 1, 1.0: 1}, {0.5: 1, 1.0: 5})
        750.0
    """
    bounds = [one for one in sorted(after) if one < math.inf]
    counts = [after[one] - before.get(one, 0) for one in bounds]
    return 1000 * float(np.interp(max([0, *counts]) / 2, [0, *counts], [0, *bounds]))


def body_of(config: ServerBenchmarkConfig, text: str | Sequence[str]) -> bytes:
    """A request for the vector of a text, or for those of several."""
    return json.dumps({"model": config.model_name, "input": text}).encode()


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _wrk(port: int, clients: int, seconds: int, bodies: Path) -> dict[str, Any]:
    """Loads a server with wrk; gives what its script prints."""
    script = bodies.with_suffix(".lua")
    script.write_text(_SCRIPT)
    words = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout=60s", f"-s{script}"]
    url = f"http://127.0.0.1:{port}/v1/embeddings"
    done = subprocess.run([*words, url, "--", bodies], capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise LeftOutError((done.stderr.strip().splitlines() or ["wrk gave nothing"])[-1])
    return json.loads(lines[-1])


def _run(config: ServerBenchmarkConfig) -> None:
    if not config.greedy and shutil.which("wrk") is None:
        raise UserError("wrk is not installed; on Debian and Ubuntu: apt-get install wrk.")
    texts, servers = spread_texts(config.input_file, config.num_texts), list[Server]()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        bodies = Path(folder) / "bodies"
        bodies.write_bytes(b"".join(body_of(config, text) + b"\n" for text in texts))
        for words in config.server:
            server = Server(words, config)
            stack.callback(server.end)
            servers.append(server)
        if config.greedy:
            ways = {one.name: partial(one.beside_greedy, texts) for one in servers}
            found = in_turns(ways, config.rounds, f"{config.greedy} greedy clients")
            report(found, greedy=config.greedy, load=os.getloadavg()[0])
            return
        for clients in (config.clients, *([1] if config.alone else [])):
            ways = {one.name: partial(one.turn, clients, bodies) for one in servers}
            found = in_turns(ways, config.rounds, f"{clients} clients")
            report(found, clients=clients, load=os.getloadavg()[0])


main = FLAGS.main_of(_run)


if __name__ == "__main__":
    sys.exit(main())
