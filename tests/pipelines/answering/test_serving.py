import functools
import json
import logging
import shutil
from threading import get_ident
from types import SimpleNamespace
from weakref import WeakValueDictionary

import numpy as np
import pytest

pytest.importorskip("starlette")

from starlette.testclient import TestClient

from keras_bert_impl.checkpoints.model_directory import write_json
from keras_bert_impl.checkpoints.sentence_modules import (
    POOLER,
    DenseWeights,
    SentenceSettings,
    write_sentence_files,
)
from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.answerer import Input
from keras_bert_impl.serving.embedder import Embedder
from keras_bert_impl.serving.http import app
from keras_bert_impl.serving.http.app import make_app
from keras_bert_impl.serving.http.bodies import to_json
from pipelines.answering.config import AnsweringConfig
from pipelines.answering.opening import open_answering_model
from pipelines.answering.predictor import Predictor
from pipelines.answering.serving import ServeConfig, _fill_up, _open, _tell, _warm_up, open_indexes
from pipelines.answering.versions import ModelVersions
from pipelines.vectors.index import VectorIndex
from tests.support.model_folders import write_encoder, write_pretrainer, write_prompted
from tests.support.tiny_bert import GOLDEN
from tests.support.toy_answerer import ToyAnswerer, ToyModel


def folders(**options):
    return {name: how.model for name, how in ServeConfig(**options).models().items()}


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"model": ("runs/mrpc/",)}, {"mrpc": "runs/mrpc/"}),
        ({"model": ("runs/a=b/mrpc",)}, {"mrpc": "runs/a=b/mrpc"}),
        ({"model": ("x", "b=y"), "model_name": ("a",)}, {"a": "x", "b": "y"}),
        ({"model": ("x",), "adapter": ("b=y",), "model_name": ("a",)}, {"a": "x", "b": "x"}),
    ],
)
def test_models_have_the_names_that_they_are_given_or_those_of_their_folders(options, found):
    assert folders(**options) == found


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"model": ("x",), "model_name": ("a", "b")}, "names 2 models"),
        ({"model": ("x",), "model_name": ("a/b",)}, "`model_name=a/b`: 'a/b' is no name"),
        ({"model": ("x",), "model_name": ("",)}, "`model_name=`: '' is no name"),
        ({"model": ("x",), "adapter": ("b d=y",)}, "`adapter=b d=y`: 'b d' is no name"),
        ({"model": ("my model=x",)}, "`model=my model=x`: 'my model' is no name for a path"),
        ({"model": ("모델=x",)}, "`model=모델=x`: '모델' is no name for a path"),
        ({"model": ("=x",)}, "`model==x`: '' is no name for a path"),
        ({"model": ("runs/a=b",)}, "`model=runs/a=b`: 'a=b' is no name for a path"),
        ({"model": ("a/x", "b/x")}, "two models are called 'x'"),
    ],
)
def test_what_cannot_be_served_is_one_sentence(options, sentence):
    with pytest.raises(UserError, match=sentence):
        ServeConfig(**options)


def test_each_question_is_asked_once_before_clients_come():
    model = ToyModel({"text": ToyAnswerer()})
    _warm_up(model)
    assert model.answerers["text"].sizes == [1]


def test_full_batches_are_computed_before_it_is_ready():
    toy = ToyAnswerer(tokens_at_once=512, batches_at_once=2)
    service = SimpleNamespace(stopping=False, is_warm=False)
    _fill_up([toy], service)
    assert service.is_warm
    assert sum(toy.sizes) * 123 >= 2 * 512  # texts of 62 letters and 61 blanks


def test_a_server_whose_batches_do_not_fill_is_ready_and_tells_it(caplog):
    toy = ToyAnswerer(batches_at_once=0)
    toy.tokens_at_once = None
    service = SimpleNamespace(stopping=False, is_warm=False)
    _fill_up([toy], service)
    assert service.is_warm
    assert "warmed up only in part" in caplog.text


def test_a_model_whose_scores_nobody_knows_is_told_at_the_start(caplog):
    pairs = ToyAnswerer(inputs=(Input("text_a"), Input("text_b")))
    for activation in ("Tanh", "GELU"):
        _tell("toy", ToyModel({"text_pair": pairs}, {"activation": activation}))
    (told,) = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert told.startswith("toy: /rerank does not take it: the model's activation_fn is 'GELU'")


TEXTS = ["the dog runs .", "a cat", "the cat sleeps , a list"]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    model = write_encoder(folder / "model")
    index = VectorIndex.create(folder / "index", str(model))
    index.add(TEXTS, ids=["dog", "cat", "list"])
    VectorIndex.create(folder / "small", str(model), size=8).add(TEXTS[:1])
    options = {"model": (f"m={model}",), "index": (f"a={folder}/index", f"b={folder}/small")}
    config = ServeConfig(**options)
    models = {name: open_answering_model(how) for name, how in config.models().items()}
    app = make_app(models, config, indexes=open_indexes(config))
    with TestClient(app, base_url="http://localhost") as client:
        yield client


def test_an_index_gives_the_nearest_texts_of_a_text_or_of_several(client):
    one = client.post("/search", json={"query": "a cat", "top_k": 2, "index": "a"}).json()
    assert one["index"] == "a"
    first, _ = one["results"]
    assert (first["id"], first["text"]) == ("cat", "a cat")
    assert first["score"] == pytest.approx(1.0, abs=1e-5)
    two = client.post("/search", json={"query": ["a cat", "the dog runs ."], "index": "b"}).json()
    assert [[row["id"] for row in found] for found in two["results"]] == [[1], [1]]
    nulls = {"query": "a cat", "top_k": None, "index": "a"}
    assert len(client.post("/search", json=nulls).json()["results"]) == 3
    assert two["results"][1][0]["score"] == pytest.approx(1.0, abs=1e-5)
    document = client.get("/openapi.json").json()
    assert "/search" in document["paths"]


def test_an_index_of_a_model_without_vectors_says_what_gives_them(tmp_path):
    model = write_pretrainer(tmp_path / "m")
    VectorIndex.create(tmp_path / "index", str(model)).add(TEXTS)
    given = {"model": (f"m={model}",), "index": (f"a={tmp_path}/index",)}
    config = ServeConfig(**given)
    with pytest.raises(UserError, match="gives no vectors for an index; add `vectors=True`"):
        _open(open_indexes(config), "m", config.models()["m"])
    config = ServeConfig(**given, answering=AnsweringConfig(model="", vectors=True))
    models = {"m": _open(open_indexes(config), "m", config.models()["m"])}
    app = make_app(models, config, indexes=open_indexes(config))
    with TestClient(app, base_url="http://localhost") as client:
        found = client.post("/search", json={"query": TEXTS[0], "top_k": 1}).json()
    assert [row["text"] for row in found["results"]] == [TEXTS[0]]


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"query": "a", "index": "c"}, 404, "there is no index 'c'; there are: a, b."),
        ({"query": "a"}, 400, "`index` must name one of a, b."),
        ({"query": [], "index": "a"}, 400, "`query` must be a text or a list of texts."),
        ({"query": [1], "index": "a"}, 400, "`query`: ids of tokens are not taken; send texts."),
        ({"query": "a", "index": "a", "top_k": 0}, 400, "`top_k` is 0; give a number from 1"),
        ({"query": ["a"] * 21, "index": "a", "top_k": 1000}, 400, "21 queries with `top_k` 1000"),
        ({"query": None, "index": "a"}, 400, "`query` must be a text or a list of texts."),
        ({"query": "a", "index": "a", "k": 1}, 400, "'k' is not known here; send query, top_k"),
    ],
)
def test_a_wrong_question_to_an_index_is_one_sentence(client, body, status, sentence):
    answer = client.post("/search", json=body)
    assert (answer.status_code, answer.json()["error"][: len(sentence)]) == (status, sentence)


def test_a_reply_of_an_index_is_written_beside_the_loop(client, monkeypatch):
    threads = []
    monkeypatch.setattr(app, "to_json", lambda body: threads.append(get_ident()) or to_json(body))
    client.get("/healthz")
    client.post("/search", json={"query": "a cat", "index": "a"})
    loop, written = threads
    assert loop != written


def test_adapters_are_asked_by_their_names_over_one_encoder(tmp_path):
    golden = GOLDEN / "peft" / "query_value_r4"
    stronger = shutil.copytree(golden / "adapter", tmp_path / "stronger")
    settings = json.loads((stronger / "adapter_config.json").read_text())
    (stronger / "adapter_config.json").write_text(json.dumps({**settings, "lora_alpha": 32}))
    adapters = {"plain": str(golden / "adapter"), "strong": str(stronger)}
    config = ServeConfig(
        model=(f"bare={golden}/base",), adapter=tuple(map("=".join, adapters.items()))
    )
    encoders = WeakValueDictionary()
    models = {name: _open({}, name, how, encoders) for name, how in config.models().items()}
    assert [*models] == ["bare", "plain", "strong"]
    keras_models = [one.answerers["text"].answerer._engine._model for one in models.values()]
    with TestClient(make_app(models, config), base_url="http://localhost") as client:
        answered = [
            client.post(f"/v1/models/{name}:predict", json={"instances": [{"text": "a b c d"}]})
            for name in models
        ]
    found = [one.json()["predictions"][0]["probabilities"] for one in answered]
    with Predictor.from_pretrained(golden / "base", adapter=stronger) as merged:
        expected = merged("a b c d")["probabilities"]
    assert found[2] == pytest.approx(expected, abs=1e-5)
    assert all(max(found[2]) != pytest.approx(max(one), abs=1e-4) for one in found[:2])
    kept = {x.path: id(x.value) for x in keras_models[0].weights}
    for model in keras_models[1:]:
        own = {x.path for x in model.weights if id(x.value) != kept.get(x.path)}
        assert {path.rsplit("/", 1)[1] for path in own if "classifier" not in path} == {
            "lora_a",
            "lora_b",
        }


def test_a_dense_layer_that_was_trained_with_an_adapter_is_its_own(tmp_path):
    golden = GOLDEN / "peft" / "query_value_r4"
    adapter = shutil.copytree(golden / "adapter", tmp_path / "own")
    draw = np.random.default_rng(0)
    dense = DenseWeights(*(draw.standard_normal(size).astype("f4") for size in ((32, 32), 32)))
    write_sentence_files(adapter, SentenceSettings(POOLER), 32, dense, write_json)
    given = {"model": (f"bare={golden}/base",), "adapter": (f"own={adapter}",)}
    config = ServeConfig(**given, answering=AnsweringConfig(model="", vectors=True))
    encoders = WeakValueDictionary()
    models = {name: _open({}, name, how, encoders) for name, how in config.models().items()}
    with TestClient(make_app(models, config), base_url="http://localhost") as client:
        asked = {"model": "own", "input": "a b c d"}
        (found,) = client.post("/v1/embeddings", json=asked).json()["data"]
    expected = Embedder.from_pretrained(golden / "base", adapter=adapter).embed("a b c d")[0]
    np.testing.assert_allclose(found["embedding"], expected, atol=1e-5)


def test_an_index_is_asked_with_the_same_prompt_offline_and_served(tmp_path):
    """Of a model whose files name one for documents alone, which is its default one."""
    model = write_prompted(tmp_path / "m", prompt="a list . ", prompts={"document": "a list . "})
    index = VectorIndex.create(tmp_path / "index", str(model))
    index.add(TEXTS)
    config = ServeConfig(model=(f"m={model}",), index=(f"a={tmp_path}/index",))
    models = {"m": open_answering_model(config.models()["m"])}
    asked = {"query": "a cat", "index": "a"}
    app = make_app(models, config, indexes=open_indexes(config))
    with TestClient(app, base_url="http://localhost") as client:
        served = client.post("/search", json=asked).json()["results"]
    for one, offline in zip(served, index.search(["a cat"])[0], strict=True):
        assert (one["id"], one["text"]) == (offline.id, offline.text)
        assert one["score"] == pytest.approx(offline.score, abs=1e-6)


def test_an_index_of_another_model_is_refused(tmp_path):
    VectorIndex.create(tmp_path / "index", str(write_encoder(tmp_path / "one")))
    other = write_encoder(tmp_path / "other", initializer_range=0.5)
    config = ServeConfig(model=(str(other),), index=(f"a={tmp_path}/index",))
    with pytest.raises(UserError, match="made with another model"):
        open_indexes(config)
    shorter = AnsweringConfig(model="", max_seq_length=5)
    same = {"model": (str(tmp_path / "one"),), "index": config.index}
    with pytest.raises(UserError, match="made with another `max_seq_length`"):
        open_indexes(ServeConfig(**same, answering=shorter))
    # Of versions the newest is served whose vectors they are.
    other.rename(tmp_path / "2")
    write_encoder(tmp_path / "1")
    config = ServeConfig(model=(f"m={tmp_path}",), index=(f"a={tmp_path}/index",))
    opening = functools.partial(_open, open_indexes(config), "m")
    model = ModelVersions("m", config.models()["m"], opening).start()
    assert model.config.model == str(tmp_path / "1")
    model.close()
