import numpy as np
import pytest

from keras_bert_impl.cpu_kernels.inference import inference_function
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.pretrainer import BertPretrainer
from tests.support.tiny_bert import TINY, features, scatter_weights


def outputs_of(compute, batch):
    return {name: np.array(value, np.float32) for name, value in compute(batch).items()}


@pytest.mark.parametrize(
    "changes", [{"hidden_act": "gelu_erf", "causal": True}, {"hidden_act": "relu"}]
)
def test_an_inference_function_computes_what_the_model_computes(changes):
    model = scatter_weights(BertPretrainer(TINY.replace(**changes)))
    fused = inference_function(model)
    for batch in (features(), features(batch=3, length=11, predictions=2)):  # one graph for both
        expected = outputs_of(model, batch)
        for name, value in outputs_of(fused, batch).items():
            np.testing.assert_allclose(value, expected[name], atol=1e-5, err_msg=name)


def test_in_bfloat16_it_is_as_near_to_float32_as_the_model_is():
    exact = outputs_of(scatter_weights(BertEncoder(TINY)), features())
    model = scatter_weights(BertEncoder(TINY, dtype="mixed_bfloat16"))
    plain = outputs_of(model, features())
    fused = outputs_of(inference_function(model), features())
    for name, value in exact.items():
        allowed = 2 * np.abs(plain[name] - value).max() + 0.01
        assert np.abs(fused[name] - value).max() < allowed, name


def test_it_keeps_the_weights_of_the_moment():
    model = scatter_weights(BertClassifier(TINY, num_labels=3))
    fused = inference_function(model)
    before = outputs_of(fused, features())["logits"]
    kernel = model.encoder.blocks[0].intermediate.kernel
    kernel.assign(kernel * 2.0)
    assert np.array_equal(outputs_of(fused, features())["logits"], before)
    assert not np.array_equal(outputs_of(inference_function(model), features())["logits"], before)
