import asyncio
import base64
import threading
from dataclasses import dataclass, field

import numpy as np
import pytest

from keras_bert_impl.serving.http.app import make_app
from keras_bert_impl.serving.http.config import ServerConfig
from keras_bert_impl.serving.page.routes import OPEN_PATHS, ShownModel, page_routes
from tests.support.asgi_client import ask, request
from tests.support.numpy_bert import NumpyBert
from tests.support.toy_page import (
    LABEL,
    MODELS,
    NO_ATTENTION,
    TEXT,
    VOCABULARY,
    FixedAnswerer,
    FixedModel,
    shown_models,
)

TOKENS, ATTENTION = "/playground/models/words/tokens", "/playground/models/words/attention"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("routes") / "model"


@pytest.fixture(scope="module")
def shown(folder):
    return shown_models(folder)


def app_of(shown, **config):
    routes = page_routes(shown)
    return make_app(MODELS, ServerConfig(**config), routes=routes, open_paths=OPEN_PATHS)


@pytest.fixture(scope="module")
def app(shown):
    return app_of(shown)


def of(*texts):
    return {"instances": list(texts)}


def test_the_page_and_its_files_come_with_a_policy_that_allows_nothing_else(app):
    for path in OPEN_PATHS:
        reply = ask(app, "GET", path)
        assert reply.status == 200, path
        assert reply.headers["content-security-policy"].startswith("default-src 'none'; ")
        assert "unsafe" not in reply.headers["content-security-policy"]
    assert ask(app, "GET", "/playground/dom.js").headers["content-type"].startswith("text/jav")


def test_the_page_names_files_that_are_there_and_nothing_from_outside(app):
    page = ask(app, "GET", "/").body.decode()
    named = {part.split('"')[0] for part in page.replace('src="', 'href="').split('href="')[1:]}
    assert {f"/{name}" for name in named if not name.startswith("#")} <= set(OPEN_PATHS)
    assert "//" not in page


def test_a_file_that_is_none_of_the_page_s_is_not_there(app):
    for path in ("/playground/../routes.py", "/playground/index.html", "/playground/x.js"):
        assert ask(app, "GET", path).status == 404


def test_models_are_told_with_their_panels_and_without_their_paths(app, folder):
    reply = ask(app, "GET", "/playground/models")
    models = {one["name"]: one for one in reply.json()["models"]}
    assert list(models) == list(MODELS)
    assert [one["kind"] for one in models["words"]["signatures"]] == [
        "masked_words",
        "next_sentence",
    ]
    assert [models["words"]["attention"], models["label"]["attention"]] == [None, NO_ATTENTION]
    assert str(folder) not in reply.body.decode()


def test_tokens_are_those_of_the_model_s_rows(app):
    (row,) = ask(app, "POST", TOKENS, of("The cats zzz")).json()["rows"]
    assert row["tokens"] == ["[CLS]", "the", "cat", "##s", "[UNK]", "[SEP]"]
    assert row["ids"] == [VOCABULARY.id_of(token) for token in row["tokens"]]
    assert row["segments"] == [0] * 6


def test_attention_is_that_of_an_independent_bert(app, folder):
    got = ask(app, "POST", ATTENTION, of("The dog")).json()
    assert got["tokens"] == ["[CLS]", "the", "dog", "[SEP]"]
    flat = np.frombuffer(base64.b64decode(got["probabilities"]), "<u2") / 65535
    ids = np.array([[VOCABULARY.id_of(token) for token in got["tokens"]]])
    reference = NumpyBert(folder)
    reference.encode(ids, ids * 0 + 1, ids * 0)
    theirs = np.stack(reference.attention)[:, 0]
    assert np.abs(flat.reshape(theirs.shape) - theirs).max() < 1e-4


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        (TOKENS, b"{", 400, "the body"),
        (TOKENS, of("a", "b"), 400, "send one instance"),
        (TOKENS, {"instances": [1]}, 400, "give a text"),
        (TOKENS, of("refuse"), 400, "is refused"),
        (TOKENS, {**of("a"), "signature_name": "x"}, 400, "the model has"),
        (TOKENS, of("a" * 2_000_000), 413, ""),
        (ATTENTION, of("dog " * 100), 400, "more than the 64 tokens"),
        ("/playground/models/label/attention", of("dog"), 400, NO_ATTENTION),
        ("/playground/models/none/tokens", of("dog"), 404, "no model 'none'"),
    ],
)
def test_a_mistake_is_one_sentence_without_a_path(app, folder, path, body, status, said):
    reply = ask(app, "POST", path, body)
    assert reply.status == status
    assert said in reply.json()["error"]
    assert str(folder) not in reply.json()["error"]


@dataclass
class Held(FixedAnswerer):
    """Prepares nothing until it may go on."""

    begun: list = field(default_factory=list)
    may_go_on: threading.Event = field(default_factory=threading.Event)

    def prepare(self, instances):
        self.begun.append(instances[0]["text"])
        self.may_go_on.wait(5)
        return super().prepare(instances)


def test_tokens_wait_in_a_short_line_that_gone_clients_leave():
    held = Held("text", "label", TEXT, LABEL)
    model = ShownModel(FixedModel({"text": held}), VOCABULARY, NO_ATTENTION, {})
    app, path = app_of({"held": model}), "/playground/models/held/tokens"

    async def of_nine():
        gone = asyncio.Event()
        texts = ["the", *["dog"] * 5, "cat", "cat", "too"]
        asked = [
            request(app, "POST", path, of(x), gone=gone if x == "dog" else None) for x in texts
        ]
        tasks = [*map(asyncio.create_task, asked)]
        refused = await tasks[-1]
        gone.set()
        held.may_go_on.set()
        return refused, [(await task).status for task in tasks]

    refused, statuses = asyncio.run(of_nine())
    assert statuses == [200, *[499] * 5, 200, 200, 429]
    assert refused.headers["retry-after"] == "1"
    assert held.begun == ["the", "cat", "cat"]


def test_with_a_key_the_page_is_open_and_the_models_are_not(shown):
    app = app_of(shown, api_key="secret")
    assert ask(app, "GET", "/").status == 200
    assert ask(app, "GET", "/playground/models").status == 401
    assert ask(app, "POST", TOKENS, of("dog")).status == 401
    key = [("Authorization", "Bearer secret")]
    assert ask(app, "GET", "/playground/models", headers=key).status == 200
