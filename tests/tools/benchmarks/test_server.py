"""The benchmark of servers under load: what it starts, sends, measures and tells."""

import dataclasses
import importlib.util
import json
import shutil
import sys

import pytest

from keras_bert_impl.errors import UserError
from tools.benchmarks import server
from tools.benchmarks.server import ServerBenchmarkConfig

SERVER = """
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"data": [{"embedding": [0.5, 1.0]}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture
def config(tmp_path):
    (tmp_path / "lines.txt").write_text("".join(f"text {n}\n\n" for n in range(40)))
    (tmp_path / "server.py").write_text(SERVER)
    return ServerBenchmarkConfig(
        server=(f"made={sys.executable} {tmp_path}/server.py {{port}}",),
        input_file=str(tmp_path / "lines.txt"),
        num_texts=20,
        clients=4,
        seconds=1,
        rounds=1,
    )


def test_a_server_that_does_not_start_is_told(config):
    with pytest.raises(UserError, match=r"made: does not start \(no\)"):
        server.Server(f"made={sys.executable} -c \"print('no')\"", config)


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("psutil"), reason="needs the extra `bench`")
@pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is not installed")
def test_a_server_is_loaded_and_measured(config, capsys):
    server._run(config)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line[0] == "{"]
    assert [row["clients"] for row in rows] == [4, 1]
    for row in rows:
        assert row["answers/s"][0] > 1
        assert row["other"] == row["429"] == [0]
        assert row["p50, ms"] <= row["p99, ms"]


@pytest.mark.slow
def test_a_small_client_is_measured_beside_greedy_ones(config, capsys):
    server._run(dataclasses.replace(config, greedy=2))
    row = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert row["greedy"] == 2
    assert row["p50 beside"] <= row["p99 beside"]
    assert row["kept"][0] > 0.1
    assert row["refused"] == [0]
