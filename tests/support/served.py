"""A server in a process of its own, without a model, and what sends bytes to it."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CERTIFICATE, KEY = (ROOT / f"tests/support/localhost.{kind}.pem" for kind in ("cert", "key"))

_PROGRAM = """
import json, logging, sys
from keras_bert_impl.serving.http.app import make_app
from keras_bert_impl.serving.http.config import ServerConfig
from keras_bert_impl.serving.http.server import listen, serve
from starlette.responses import Response
from starlette.routing import Route
from tests.support.toy_answerer import ToyAnswerer, ToyModel

logging.basicConfig(level=logging.INFO, format="%(message)s")
seconds, settings = float(sys.argv[1]), json.loads(sys.argv[2])
config = ServerConfig(port=0, **settings)
toy = ToyAnswerer(seconds=seconds, tokens_at_once=4096)
routes = [Route("/large", lambda request: Response(bytes(12 << 20)))]
app = make_app({"toy": ToyModel({"text": toy})}, config, routes=routes)
serve(app, config, listen("127.0.0.1", 0), "/v1/models")
"""


class Served:
    """A running server: `port`, `process`, and what it logs."""

    def __init__(self, process, log):
        self.process, self._log = process, log
        self.port = int(self._logged(r"https?://127\.0\.0\.1:(\d+)")[1])

    @property
    def log(self):
        """What it has said."""
        return self._log.read_text(errors="replace")

    def _logged(self, pattern, seconds=60):
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.process.poll() is None:
            if found := re.search(pattern, self.log):
                return found
            time.sleep(0.05)
        raise AssertionError(f"the server does not start: {self.log}")

    def memory(self):
        """Bytes in memory, and the most it ever had."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        fields = re.findall(r"Vm(?:RSS|HWM):\s+(\d+) kB", status)
        high, now = (int(one) * 1024 for one in fields)
        return now, high

    def ask(self, method, path, body=None, headers=None, seconds=30):
        """A request by Python's own client: (status, headers, body)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers or {})
            reply = connection.getresponse()
            return reply.status, dict(reply.headers), reply.read()

    def send(self, parts, seconds=20, pause=0.0, end=False):
        """Sends bytes as they are, in parts; gives what comes back until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            with contextlib.suppress(ConnectionError):
                for part in parts:
                    connection.sendall(part)
                    time.sleep(pause)
                if end:
                    connection.shutdown(socket.SHUT_WR)
            return read_all(connection)

    def stop(self, number=signal.SIGTERM, seconds=30):
        """Stops it; gives the exit code."""
        self.process.send_signal(number)
        return self.process.wait(seconds)


def read_all(connection):
    """What comes until the other side closes."""
    got = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(65536):
            got += part
    return got


@contextlib.contextmanager
def served_toy(seconds=0.0, **settings):
    """A server of a toy model, which takes so many seconds a batch."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.txt"
        with log.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, str(seconds), json.dumps(settings, default=str)],
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
        try:
            yield Served(process, log)
        finally:
            process.kill()
            process.wait()
