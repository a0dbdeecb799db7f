"""The page beside the server: it shows the very models that are served."""

import pytest

pytest.importorskip("starlette")

from starlette.testclient import TestClient

from keras_bert_impl.serving.http.app import make_app
from pipelines.answering.opening import open_answering_model
from pipelines.answering.serving import ServeConfig, page_of, show
from tests.support.model_folders import write_encoder


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "tiny"
    write_encoder(folder)
    config = ServeConfig(model=(str(folder),))
    models = {name: open_answering_model(how) for name, how in config.models().items()}
    return TestClient(
        make_app(models, config, **page_of({name: show(model) for name, model in models.items()})),
        base_url="http://localhost",
    )


def test_it_shows_the_models_that_are_served_with_their_attention(client):
    (model,) = client.get("/playground/models").json()["models"]
    assert (model["name"], model["attention"]) == ("tiny", None)
    assert [one["kind"] for one in model["signatures"]] == ["vector"]


def test_it_shows_tokens_of_what_the_server_answers(client):
    body = {"instances": ["the dog"]}
    tokens = client.post("/playground/models/tiny/tokens", json=body).json()["rows"]
    assert len(tokens) == 1
    assert client.post("/v1/models/tiny:predict", json=body).status_code == 200
