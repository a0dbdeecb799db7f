"""The workload that all contenders share."""

import numpy as np
import pytest

from keras_bert_impl.models.pretrainer import BertPretrainer
from tools.benchmarks.workload import Workload, matrix_products


def test_every_sequence_is_full_and_its_masked_positions_are_in_it():
    features = Workload(size="tiny", batch_size=3, length=16).features()
    assert features["input_ids"].shape == (3, 16)
    assert features["input_mask"].all()
    assert features["masked_lm_positions"].shape == (3, 2)
    assert features["masked_lm_positions"].max() < 16


def test_the_features_are_what_the_pretrainer_takes():
    workload = Workload(size="tiny", batch_size=2, length=8, vocab_size=50)
    model = BertPretrainer(workload.config)
    features = workload.features()
    outputs = model({name: features[name] for name in model.input})
    assert all(np.isfinite(np.asarray(output)).all() for output in outputs.values())


def test_a_step_counts_its_products_by_hand():
    workload = Workload(size="tiny", batch_size=2, length=8, vocab_size=50)  # 2 layers of 128
    layer = 2 * 8 * (4 * 128 * 128 + 2 * 128 * 512) + 2 * 2 * 8 * 8 * 128
    heads = 2 * (128 * 128 + 128 * 50) + 2 * 128 * 128 + 2 * 2 * 128
    assert workload.predictions == 1
    assert workload.flops(training=False) == 2 * 2 * layer
    assert workload.flops(training=True) == 2 * 3 * (2 * layer + heads)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("training", [False, True])
def test_the_ceiling_computes_products_in_the_precision_asked(precision, training):
    workload = Workload("tiny", 2, 8, precision, vocab_size=50)
    assert np.isfinite(matrix_products(workload, training)())
