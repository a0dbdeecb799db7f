"""OpenVINO's outputs, held to the model's own."""

import numpy as np
import pytest

from keras_bert_impl.engines.openvino_engine import OpenVinoEngine
from tests.support.tiny_bert import features


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
