"""Short rows alone: the model's outputs, before and after a fixed length is ready."""

import threading

import numpy as np
import pytest

from keras_bert_impl.engines import openvino_engine
from keras_bert_impl.engines.openvino_engine import OpenVinoEngine
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from tests.support.tiny_bert import TINY, features, scatter_weights

pytest.importorskip("openvino", reason="needs the extra `openvino`")


def row(length, seed=0, batch=1):
    found = features(batch=batch, length=length, seed=seed)
    return {name: found[name] for name in ENCODER_INPUTS}


def engine_of(model, **options):
    from keras_bert_impl.engines.openvino_graph import openvino_graph

    graph = openvino_graph(model)
    return OpenVinoEngine(lambda: graph, threads=1, **options)


@pytest.fixture(scope="module")
def encoder():
    return scatter_weights(BertEncoder(TINY))


@pytest.fixture
def classifier():
    # As many labels as a fixed length has tokens: they are no tokens.
    return scatter_weights(BertClassifier(TINY, num_labels=16))


def agree(engine, model, batch):
    found = engine.compute_one(batch)
    assert set(found) == set(model.output)
    for name, value in model(batch).items():
        np.testing.assert_allclose(found[name], value, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("name", ["encoder", "classifier"])
def test_every_length_gets_the_models_outputs(name, request):
    model = request.getfixturevalue(name)
    engine = engine_of(model)
    for turn in range(6):
        for length in (3, 8, 9, 16, 17, 31, 32):
            agree(engine, model, row(length, seed=turn))
        if turn == 4:
            engine._short_rows.wait()
    assert sorted(engine._short_rows._ready) == [8, 16, 24, 32]
    agree(engine, model, row(7, batch=3))
    engine.close()


def test_a_model_with_fewer_positions_goes_on_with_open_shapes():
    model = scatter_weights(BertEncoder(TINY.replace(max_position_embeddings=20)))
    engine = engine_of(model)
    for _ in range(6):
        agree(engine, model, row(18))
    engine._short_rows.wait()
    agree(engine, model, row(18))
    assert engine._short_rows._ready == {}


def test_nothing_is_compiled_for_a_few_rows(encoder, monkeypatch):
    made = []
    monkeypatch.setattr(openvino_engine.ShortRows, "_make", lambda _, length: made.append(length))
    engine = engine_of(encoder)
    for _ in range(3):
        engine.compute_one(row(5))
    assert made == []
    for _ in range(3):
        engine.compute_one(row(5))
    assert made == [8]


def test_nobody_waits_while_a_length_is_compiled(encoder, monkeypatch):
    go = threading.Event()
    monkeypatch.setattr(openvino_engine.ShortRows, "_make", lambda *_: go.wait())
    engine = engine_of(encoder)
    for _ in range(8):
        agree(engine, encoder, row(5))
    go.set()
    engine.close()


def test_other_inputs_large_models_and_deterministic_engines_go_the_plain_way(
    model, graph, encoder, monkeypatch
):
    made = []
    monkeypatch.setattr(openvino_engine.ShortRows, "_make", lambda _, length: made.append(length))
    pretrainer = OpenVinoEngine(lambda: graph, threads=1)
    fixed = engine_of(encoder, deterministic=True)
    monkeypatch.setattr(openvino_engine, "_MOST_BYTES", 1000)
    large = engine_of(encoder)
    for _ in range(6):
        pretrainer.compute_one({**row(5), "masked_lm_positions": np.array([[1]], np.int32)})
        fixed.compute_one(row(5))
        large.compute_one(row(5))
    assert made == []
