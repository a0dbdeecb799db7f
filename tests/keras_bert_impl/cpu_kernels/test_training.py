import numpy as np
import tensorflow as tf

from keras_bert_impl.cpu_kernels import compiled, training
from keras_bert_impl.cpu_kernels.training import TrainingKernels
from keras_bert_impl.layers import kernels
from keras_bert_impl.layers.dropout import random_address
from keras_bert_impl.models.pretrainer import BertPretrainer
from tests.support.gradients import gradients_of_pretraining_loss
from tests.support.tiny_bert import TINY, features, scatter_weights

ADDRESS = [1, 2, 3, 4]


def both(changes):
    """Outputs and gradients with the plain and with the fast kernels, same draws of dropout."""
    model = scatter_weights(BertPretrainer(TINY.replace(**changes)))
    results = []
    for chosen in (kernels.PLAIN, TrainingKernels()):
        model.kernels = chosen
        outputs = {name: np.array(value) for name, value in model(features()).items()}
        results.append((outputs, gradients_of_pretraining_loss(model, features(), ADDRESS)))
    return results


def assert_both_agree(changes):
    (plain, plain_gradients), (fast, fast_gradients) = both(changes)
    for name, value in plain.items():
        np.testing.assert_allclose(fast[name], value, atol=2e-5, err_msg=name)
    assert fast_gradients.keys() == plain_gradients.keys()
    for path, gradient in plain_gradients.items():
        np.testing.assert_allclose(fast_gradients[path], gradient, atol=2e-5, err_msg=path)


def test_fast_and_plain_kernels_agree_in_outputs_and_gradients():
    assert_both_agree({"hidden_act": "gelu_erf", "causal": True})


def test_attention_is_traced_once_for_all_blocks():
    before = training._self_attention.experimental_get_tracing_count()
    model = BertPretrainer(TINY.replace(num_hidden_layers=3, attention_probs_dropout_prob=0.4))
    with kernels.use(TrainingKernels()), random_address(ADDRESS):
        model(features(), training=True)
    assert training._self_attention.experimental_get_tracing_count() == before + 1


def test_a_graph_without_known_sizes_serves_batches_of_every_size():
    model = scatter_weights(BertPretrainer(TINY))
    signature = {name: tf.TensorSpec([None, None], tf.int32) for name in model.input}

    @tf.function(input_signature=[signature], autograph=False)
    def step(batch):
        with random_address(ADDRESS), tf.GradientTape() as tape:
            outputs = model(batch, training=True)
            loss = tf.reduce_mean(outputs["masked_lm_logits"])
        first = model.encoder.blocks[0].attention.projections[0].kernel.value
        return outputs, tape.gradient(loss, first)

    with kernels.use(TrainingKernels()):
        traced = step.get_concrete_function()
    for batch, length in ((2, 8), (3, 12)):
        inputs = {k: v for k, v in features(batch, length).items() if k in signature}
        outputs, gradient = traced({name: tf.constant(array) for name, array in inputs.items()})
        with kernels.use(kernels.PLAIN), random_address(ADDRESS), tf.GradientTape() as tape:
            expected = model(inputs, training=True)
            loss = tf.reduce_mean(expected["masked_lm_logits"])
        first = model.encoder.blocks[0].attention.projections[0].kernel.value
        for name, value in expected.items():
            np.testing.assert_allclose(outputs[name], value, atol=2e-5, err_msg=name)
        np.testing.assert_allclose(gradient, tape.gradient(loss, first), atol=2e-5)


def test_large_kernels_are_split_and_give_the_same(monkeypatch):
    monkeypatch.setattr(compiled, "_LARGE", 1)
    monkeypatch.setattr(compiled, "_cores", lambda: 2)
    found, bounds = [], compiled._bounds
    monkeypatch.setattr(
        compiled, "_bounds", lambda tensor: found.append(bounds(tensor)) or found[-1]
    )
    assert_both_agree({"attention_probs_dropout_prob": 0.3})  # of no other test: it is traced here
    assert found
    assert all(each == [0, 1, 2] for each in found)


def test_recomputed_activations_work_with_fast_kernels():
    model = scatter_weights(BertPretrainer(TINY, dtype="mixed_bfloat16"))
    model.kernels = TrainingKernels()
    kept = gradients_of_pretraining_loss(model, features(), ADDRESS)
    model.encoder.recompute = True
    again = gradients_of_pretraining_loss(model, features(), ADDRESS)
    for path, gradient in kept.items():
        np.testing.assert_allclose(again[path], gradient, atol=1e-5, err_msg=path)


class Counted(kernels.PlainKernels):
    """Counts how often attention is computed."""

    def __init__(self):
        self.count = 0

    def self_attention(self, *arguments):
        self.count += 1
        return super().self_attention(*arguments)


def test_the_backward_pass_computes_again_with_the_models_kernels():
    model = BertPretrainer(TINY)
    model.encoder.recompute = True
    model.kernels = counted = Counted()
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(model(features(), training=True)["next_sentence_logits"])
    assert counted.count == TINY.num_hidden_layers
    tape.gradient(total, model.trainable_variables[0].value)
    assert counted.count == 2 * TINY.num_hidden_layers
