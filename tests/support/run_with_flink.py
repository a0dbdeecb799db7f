"""Runs the Beam tests on Flink: `python -m tests.support.run_with_flink`.

`KERAS_BERT_FLINK_SERVER` holds the command that starts Beam's Flink job server in the foreground
(for example `java -jar beam-runners-flink-1.19-job-server.jar --job-port 8099`); it is started,
waited for and ended. Where a server runs already, `KERAS_BERT_FLINK_ENDPOINT=HOST:PORT` names it.
"""

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

_TEST = "tests/pipelines/runners/test_beam.py"
_PATIENCE = 300  # seconds; a server may fetch its jars first


@contextlib.contextmanager
def _server(command: str, endpoint: str) -> Iterator[None]:
    process = subprocess.Popen(shlex.split(command), start_new_session=True)
    host, port = endpoint.rsplit(":", 1)
    try:
        deadline = time.monotonic() + _PATIENCE
        while True:
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"The job server did not come up at {endpoint}: {command}")
            with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 1):
                break
            time.sleep(0.5)
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def main() -> int:
    """Starts the server if there is one to start, runs the tests, gives their exit code."""
    endpoint = os.environ.setdefault("KERAS_BERT_FLINK_ENDPOINT", "localhost:8099")
    command = os.environ.get("KERAS_BERT_FLINK_SERVER")
    tests = [sys.executable, "-m", "pytest", "-q", "-rs", _TEST]
    with _server(command, endpoint) if command else contextlib.nullcontext():
        return subprocess.run(tests, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
