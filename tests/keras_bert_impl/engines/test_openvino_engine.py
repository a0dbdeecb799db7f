"""OpenVINO's outputs, held to the model's own."""

import resource
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from keras_bert_impl.engines import openvino_engine
from keras_bert_impl.engines.openvino_engine import OpenVinoEngine
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from tests.support.tiny_bert import TINY, features, scatter_weights


def inputs(**sizes):
    wanted = ("input_ids", "input_mask", "segment_ids", "masked_lm_positions")
    return {name: value for name, value in features(**sizes).items() if name in wanted}


@pytest.mark.parametrize("count", [0, 1, 7])
def test_every_batch_gets_the_models_outputs(model, graph, count):
    batches = {n: inputs(batch=n + 1, length=6 + n, seed=n) for n in range(count)}
    engine = OpenVinoEngine(lambda: graph, threads=2)
    found = dict(engine.compute(batches.items()))
    assert sorted(found) == sorted(batches)
    for number, outputs in found.items():
        for name, value in model(batches[number]).items():
            np.testing.assert_allclose(outputs[name], value, atol=3e-6, err_msg=name)


def test_bfloat16_is_near_and_a_graph_is_made_once_where_it_is_used(model, graph):
    made = []
    engine = OpenVinoEngine(lambda: made.append(1) or graph, "bfloat16", threads=1)
    assert made == []
    for _ in range(2):
        ((_, outputs),) = engine.compute([("key", inputs())])
    assert made == [1]
    expected = model(inputs())["next_sentence_logits"]
    np.testing.assert_allclose(outputs["next_sentence_logits"], expected, atol=0.1)
    assert engine.identity() is None


def test_a_reader_that_fails_is_heard_and_leaves_nothing_behind(graph):
    def batches():
        yield 1, inputs()
        yield 2, inputs()
        raise ValueError("no more texts")

    with pytest.raises(ValueError, match="no more texts"):
        list(OpenVinoEngine(lambda: graph, threads=1).compute(batches()))


def test_threads_compute_at_the_same_time_and_get_their_own_outputs(model, graph):
    engine = OpenVinoEngine(lambda: graph, threads=2)
    batches = [inputs(batch=1 + n % 3, length=6 + n % 5, seed=n) for n in range(24)]
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(engine.compute_one, batches))
    for batch, outputs in zip(batches, found, strict=True):
        for name, value in model(batch).items():
            np.testing.assert_allclose(outputs[name], value, atol=3e-6, err_msg=name)


def test_closing_waits_for_what_is_computed_and_ends_it(graph):
    engine = OpenVinoEngine(lambda: graph, threads=1)
    running = engine.compute([(number, inputs(seed=number)) for number in range(3)])
    assert next(running)[0] == 0
    with ThreadPoolExecutor(1) as threads:
        closing = threads.submit(engine.close)
        with pytest.raises(TimeoutError):
            closing.result(timeout=0.1)
        assert [number for number, _ in running] == [1, 2]
        closing.result(timeout=10)
    with pytest.raises(RuntimeError, match="closed"):
        engine.compute_one(inputs())
    engine.close()


@pytest.mark.slow
def test_memory_stays_flat_whatever_shapes_come(graph):
    """OpenVINO and oneDNN keep code for the shapes that they have met; ours are bounded."""
    engine = OpenVinoEngine(lambda: graph, threads=1)
    shapes = [(rows, length) for rows in range(1, 41) for length in range(3, 23)]
    np.random.default_rng(1).shuffle(shapes)

    def bytes_after(some):
        for rows, length in some:
            engine.compute_one(inputs(batch=rows, length=length, seed=0))
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    warm = bytes_after(shapes[:400])
    assert bytes_after(shapes[400:]) - warm < 16e6  # 70 without the bounds


pytest.importorskip("openvino", reason="needs the extra `openvino`")


def row(length, seed=0, batch=1):
    found = features(batch=batch, length=length, seed=seed)
    return {name: found[name] for name in ENCODER_INPUTS}


def engine_of(model, threads=1, **options):
    from keras_bert_impl.engines.openvino_graph import openvino_graph

    graph = openvino_graph(model)
    return OpenVinoEngine(lambda: graph, threads=threads, **options)


@pytest.fixture(scope="module")
def encoder():
    return scatter_weights(BertEncoder(TINY))


def agree(engine, model, batch):
    found = engine.compute_one(batch)
    assert set(found) == set(model.output)
    for name, value in model(batch).items():
        np.testing.assert_allclose(found[name], value, atol=1e-5, err_msg=name)


def test_every_length_gets_the_models_outputs(encoder):
    assert TINY.hidden_size == 16  # as a fixed length: what is as wide as that is no tokens
    engine = engine_of(encoder)
    for turn in range(6):
        for length in (3, 8, 9, 16, 17, 31, 32):
            agree(engine, encoder, row(length, seed=turn))
        if turn == 4:
            engine._short_rows.wait()
    assert sorted(engine._short_rows._ready) == [8, 16, 24, 32]
    agree(engine, encoder, row(7, batch=3))
    engine.close()


@pytest.mark.parametrize(("busy", "ways"), [(True, [(1, 1)]), (False, [(1, 2)])])
def test_one_core_computes_a_text_while_others_want_the_cores(encoder, busy, ways, monkeypatch):
    monkeypatch.setattr(openvino_engine, "others_want_cores", lambda own: busy)
    engine = engine_of(encoder, threads=2)
    agree(engine, encoder, row(5))
    assert list(engine._compiled) == ways
    agree(engine, encoder, row(5, batch=2))  # more than a text
    assert list(engine._compiled) == [*ways, *({(1, 2)} - {*ways})]
    engine.close()


def test_threads_that_computed_just_now_are_no_work_of_others(encoder, monkeypatch):
    own, now = [], iter([0.0, 1.0, 1.001, 2.0, 9.0, 10.0])  # at the beginning and the end of each
    monkeypatch.setattr(openvino_engine, "others_want_cores", own.append)
    monkeypatch.setattr(openvino_engine, "time", SimpleNamespace(monotonic=lambda: next(now)))
    engine = engine_of(encoder, threads=2)
    for _ in range(3):
        engine.compute_one(row(5))
    assert own == [1, 2, 1]
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
