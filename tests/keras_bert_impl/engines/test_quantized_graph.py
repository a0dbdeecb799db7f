"""int8: made once, kept next to the model, and made again for another graph."""

import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.checkpoints.destination import QUANTIZED_FOLDER
from keras_bert_impl.engines.openvino_engine import OpenVinoEngine
from keras_bert_impl.engines.quantized_graph import (
    evenly_spread,
    head_products,
    quantized_graph,
)
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.token_models import BertSpanLabeler, BertTokenClassifier
from tests.keras_bert_impl.engines.test_openvino_engine import inputs
from tests.support.tiny_bert import TINY


@given(st.integers(0, 3000), st.integers(2, 40))
def test_a_sample_is_spread_over_all(number, count):
    sample = evenly_spread(range(number), count)
    assert min(number, count // 2) <= len(sample) <= count
    assert len(set(np.diff(sample).tolist())) <= 1
    assert sample[:1] == [0] * bool(number)
    assert not number or number - sample[-1] <= max(1, 2 * number / count)


@pytest.mark.slow
def test_scales_are_found_once_and_kept_beside_the_model(model, graph, tmp_path):
    pytest.importorskip("nncf", reason="needs the extra `openvino`")
    rows = [inputs(batch=1, seed=seed) for seed in range(8)]
    made = quantized_graph(graph.clone(), tmp_path, lambda: rows)
    assert (tmp_path / QUANTIZED_FOLDER / "model.xml").exists()
    kept = quantized_graph(graph.clone(), tmp_path, lambda: pytest.fail("they are there"))
    found = []
    for one in (made, kept):
        assert "FakeQuantize" in {operation.get_type_name() for operation in one.get_ops()}
        ((_, outputs),) = OpenVinoEngine(lambda one=one: one, threads=1).compute([(0, rows[3])])
        found.append(outputs["next_sentence_logits"])
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], model(rows[3])["next_sentence_logits"], atol=0.3)


def test_what_stands_behind_the_encoder_keeps_its_digits(graph):
    kept = head_products(graph)
    assert kept
    assert all("pooler" in name for name in kept), kept


@pytest.mark.parametrize(
    "make",
    [
        BertSpanLabeler,
        lambda config: BertTokenClassifier(config, 9),
        lambda config: BertClassifier(config, 99),
    ],
)
def test_heads_are_no_products_that_an_engine_would_round(make):
    pytest.importorskip("openvino", reason="needs the extra `openvino`")
    from keras_bert_impl.engines.openvino_engine import openvino_graph

    operations = openvino_graph(make(TINY)).get_ops()
    names = [x.get_friendly_name() for x in operations if x.get_type_name() == "MatMul"]
    assert names
    assert all("encoder" in name for name in names)


def test_texts_are_needed(graph):
    pytest.importorskip("nncf", reason="needs the extra `openvino`")
    with pytest.raises(UserError, match="needs texts to find its scales on"):
        quantized_graph(graph.clone(), None, list)


def test_nothing_is_put_into_a_checkpoint_of_a_run_or_where_one_was(graph, tmp_path, monkeypatch):
    monkeypatch.setattr("keras_bert_impl.engines.quantized_graph._quantize", lambda graph, _: graph)
    checkpoint = tmp_path / "step-00000001"
    assert quantized_graph(graph, checkpoint, list) is graph
    assert not checkpoint.exists()
    checkpoint.mkdir()
    (checkpoint / "checkpoint.json").write_text("{}")
    assert quantized_graph(graph, checkpoint, list) is graph
    assert len(list(checkpoint.iterdir())) == 1


def test_a_folder_that_cannot_be_written_costs_a_line_of_the_log(
    graph, tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr("keras_bert_impl.engines.quantized_graph._quantize", lambda graph, _: graph)
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING):
        assert quantized_graph(graph, tmp_path / "file", list) is graph
    assert "int8 is made anew each time" in caplog.text
