"""int8: a sample of texts, and what keeps its digits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.engines.quantized_graph import evenly_spread, head_products, quantize
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.token_models import BertSpanLabeler, BertTokenClassifier
from tests.support.tiny_bert import TINY


@given(st.integers(0, 3000), st.integers(2, 40))
def test_a_sample_is_spread_over_all(number, count):
    sample = evenly_spread(range(number), count)
    assert min(number, count // 2) <= len(sample) <= count
    assert len(set(np.diff(sample).tolist())) <= 1
    assert sample[:1] == [0] * bool(number)
    assert not number or number - sample[-1] <= max(1, 2 * number / count)


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
    from keras_bert_impl.engines.openvino_graph import openvino_graph

    operations = openvino_graph(make(TINY)).get_ops()
    names = [x.get_friendly_name() for x in operations if x.get_type_name() == "MatMul"]
    assert names
    assert all("encoder" in name for name in names)


def test_texts_are_needed(graph):
    pytest.importorskip("nncf", reason="needs the extra `openvino`")
    with pytest.raises(UserError, match="needs texts to find its scales on"):
        quantize(graph.clone(), [])
