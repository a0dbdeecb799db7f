"""`keras-bert serve`, from its flags to its end."""

import contextlib
import http.client
import json
import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from keras_bert_impl.serving.http import config
from tests.support.model_folders import write_encoder
from tests.support.programs import Program
from tools import serve

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ["the dog runs .", "a", "the cat sleeps , a list", "the dog and the cat"]


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ([], "no model is named; give --model"),
        (["--model=x", "--port=99999"], "--port=99999 must be 0 to 65535"),
        (["--model=/no/such/model", "--port=0"], "/no/such/model"),
        (["--model=x", "--host=192.0.2.1"], "--host=192.0.2.1, --port=8501: "),
        (["--model=x", "--api_key=a b", "--port=0"], "--api_key: is no API key"),
        (["--model=x", "--api_key_file=/no/key", "--port=0"], "/no/key"),
    ],
)
def test_a_mistake_is_one_sentence(capsys, flags, sentence):
    assert serve.main(flags) == 1
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


def test_a_missing_extra_is_one_sentence(capsys, monkeypatch):
    monkeypatch.setattr(config, "_PACKAGES", ("no_such_package",))
    assert serve.main(["--model=x"]) == 1
    assert "serving needs the package no_such_package" in capsys.readouterr().err


@pytest.mark.parametrize("key", ["of the environment", "of a file"])
def test_a_key_may_stand_where_nobody_sees_it(monkeypatch, tmp_path, key):
    options = {}
    if key == "of a file":
        (tmp_path / "key").write_text("secret\n")
        options = {"api_key_file": tmp_path / "key"}
    else:
        monkeypatch.setenv("KERAS_BERT_API_KEY", "secret")
    assert config.ServerConfig(**options).key() == "secret"


class Running:
    """A running `keras-bert serve`."""

    def __init__(self, folder, *flags):
        words = ["tools", "serve", f"--model=tiny={folder}", "--port=0", *flags]
        self.process = Program(words, cwd=ROOT)
        until = time.monotonic() + 120
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)", self.log)):
            assert self.process.poll() is None, self.log
            assert time.monotonic() < until, self.log
            time.sleep(0.1)
        self.port = int(found[1])

    @property
    def log(self):
        with contextlib.suppress(FileNotFoundError):  # it has not begun yet
            return self.process.printed("error")
        return ""

    def ask(self, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET" if body is None else "POST", path, body and json.dumps(body))
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())


@pytest.mark.slow
def test_served_vectors_are_those_of_python_and_a_stop_ends_with_0(tmp_path):
    from keras_bert_impl.serving.embedder import Embedder

    write_encoder(tmp_path / "model")
    expected = Embedder.from_pretrained(tmp_path / "model").embed(TEXTS)
    running = Running(tmp_path / "model")
    try:
        body = {"instances": TEXTS}
        _, answer = running.ask("/v1/models/tiny:predict", body)
        np.testing.assert_allclose(answer["predictions"], expected, atol=1e-5)
        _, answer = running.ask("/v1/embeddings", {"model": "tiny", "input": TEXTS})
        vectors = [one["embedding"] for one in answer["data"]]
        np.testing.assert_allclose(vectors, expected, atol=1e-5)
        status, answer = running.ask("/v1/models/tiny/metadata")
        assert status == 200
        assert str(tmp_path) not in json.dumps(answer)
        path, body = re.search(r"; try: curl http://[^/]+(\S+) -d '(.*)'", running.log).groups()
        assert running.ask(path, json.loads(body))[0] == 200
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(60) == 0
        assert "Traceback" not in running.log
    finally:
        running.process.kill()


@pytest.mark.slow
def test_openais_own_client_works_unchanged(tmp_path):
    openai = pytest.importorskip("openai", reason="the package openai is not installed")
    write_encoder(tmp_path / "model")
    running = Running(tmp_path / "model", "--api_key=secret")
    try:
        address = f"http://127.0.0.1:{running.port}/v1"
        with openai.OpenAI(base_url=address, api_key="secret", max_retries=0) as client:
            packed = client.embeddings.create(model="tiny", input=TEXTS)  # base64 by default
            plain = client.embeddings.create(model="tiny", input=TEXTS, encoding_format="float")
            for one, other in zip(packed.data, plain.data, strict=True):
                np.testing.assert_allclose(one.embedding, other.embedding, atol=1e-7)
            assert client.models.list().data[0].id == "tiny"
            assert client.models.retrieve("tiny").id == "tiny"
            with pytest.raises(openai.BadRequestError, match="ids of tokens"):
                client.embeddings.create(model="tiny", input=[[1, 2]])
            with pytest.raises(openai.NotFoundError, match="no model 'other'"):
                client.embeddings.create(model="other", input="a")
        stranger = openai.OpenAI(base_url=address, api_key="wrong", max_retries=0)
        with stranger, pytest.raises(openai.AuthenticationError):
            stranger.embeddings.create(model="tiny", input="a")
    finally:
        running.process.kill()
