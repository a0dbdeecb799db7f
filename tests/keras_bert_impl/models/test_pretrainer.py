import numpy as np
import pytest

from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.checkpoints.restore import restore
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.gradients import assert_slopes, gradients_of_pretraining_loss
from tests.support.numpy_bert import NumpyBert, log_softmax
from tests.support.tiny_bert import (
    GOLDEN,
    TINY,
    VOCABULARY,
    features,
    golden_config,
    golden_inputs,
    scatter_weights,
)

CHECKPOINT = GOLDEN / "pretrain" / "init" / "bert_model.ckpt"
QUIET = TINY.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def test_both_heads_give_the_original_s_log_probabilities():
    model = BertPretrainer(golden_config())
    restore(model, CHECKPOINT)
    outputs = model.predict(golden_inputs(), verbose=0)  # on JAX one program, not each operation's
    with np.load(GOLDEN / "forward" / "heads.npz") as golden:
        masked = log_softmax(np.array(outputs["masked_lm_logits"], np.float64))
        masked = masked.reshape(golden["masked_lm_log_probs"].shape)
        assert np.abs(masked - golden["masked_lm_log_probs"]).max() < 1e-5
        following = log_softmax(np.array(outputs["next_sentence_logits"], np.float64))
        assert np.abs(following - golden["next_sentence_log_probs"]).max() < 1e-5


@pytest.mark.parametrize(
    "changes", [{"hidden_act": "gelu_erf"}, {"causal": True}, {"anticausal": True}]
)
def test_an_independent_encoder_reads_the_directory_and_agrees(tmp_path, changes):
    model = scatter_weights(BertPretrainer(QUIET.replace(**changes)))
    write_model_directory(tmp_path / "model", model, TextSettings(VOCABULARY))
    batch, reference = features(), NumpyBert(tmp_path / "model")
    sequence = reference.encode(batch["input_ids"], batch["input_mask"], batch["segment_ids"])[-1]
    outputs = model(batch)
    np.testing.assert_allclose(
        log_softmax(np.array(outputs["masked_lm_logits"], np.float64)),
        reference.masked_lm_log_probabilities(sequence, batch["masked_lm_positions"]),
        atol=2e-5,
    )
    np.testing.assert_allclose(
        log_softmax(np.array(outputs["next_sentence_logits"], np.float64)),
        reference.next_sentence_log_probabilities(reference.pooled(sequence)),
        atol=1e-5,
    )


@pytest.mark.parametrize("changes", [{}, {"causal": True}])
def test_gradients_are_those_of_an_independent_encoder(tmp_path, changes):
    model = scatter_weights(BertPretrainer(QUIET.replace(**changes)))
    write_model_directory(tmp_path / "model", model, TextSettings(VOCABULARY))
    reference, batch = NumpyBert(tmp_path / "model"), features()
    gradients = gradients_of_pretraining_loss(model, batch)
    assert_slopes(reference, gradients, _NAMES, lambda: reference.pretraining_loss(batch))


_NAMES = [
    ("embeddings/token_embeddings", "embeddings.word_embeddings.weight", False),
    ("embeddings/segment_embeddings", "embeddings.token_type_embeddings.weight", False),
    ("embeddings/position_embeddings", "embeddings.position_embeddings.weight", False),
    ("embeddings/layer_norm/gamma", "embeddings.LayerNorm.weight", False),
    ("layer_0/attention/query/kernel", "encoder.layer.0.attention.self.query.weight", True),
    ("layer_0/attention/query/bias", "encoder.layer.0.attention.self.query.bias", False),
    ("layer_0/attention/key/kernel", "encoder.layer.0.attention.self.key.weight", True),
    ("layer_0/attention/value/kernel", "encoder.layer.0.attention.self.value.weight", True),
    ("layer_0/attention/value/bias", "encoder.layer.0.attention.self.value.bias", False),
    ("layer_0/attention_output/kernel", "encoder.layer.0.attention.output.dense.weight", True),
    ("layer_0/attention_output/bias", "encoder.layer.0.attention.output.dense.bias", False),
    ("layer_0/attention_layer_norm/beta", "encoder.layer.0.attention.output.LayerNorm.bias", False),
    ("layer_1/intermediate/kernel", "encoder.layer.1.intermediate.dense.weight", True),
    ("layer_1/intermediate/bias", "encoder.layer.1.intermediate.dense.bias", False),
    ("layer_1/output/kernel", "encoder.layer.1.output.dense.weight", True),
    ("layer_1/output_layer_norm/gamma", "encoder.layer.1.output.LayerNorm.weight", False),
    ("pooler/dense/kernel", "pooler.dense.weight", True),
    ("masked_lm/transform/kernel", "cls.predictions.transform.dense.weight", True),
    ("masked_lm/layer_norm/gamma", "cls.predictions.transform.LayerNorm.weight", False),
    ("masked_lm/output_bias", "cls.predictions.bias", False),
    ("next_sentence/dense/kernel", "cls.seq_relationship.weight", True),
    ("next_sentence/dense/bias", "cls.seq_relationship.bias", False),
]


def test_recomputed_activations_give_the_same_gradients():
    batch, address = features(), [1, 2, 3, 4]
    model = scatter_weights(BertPretrainer(TINY))
    kept = gradients_of_pretraining_loss(model, batch, address)
    model.encoder.recompute = True
    again = gradients_of_pretraining_loss(model, batch, address)
    for path, gradient in kept.items():
        np.testing.assert_allclose(again[path], gradient, atol=1e-5, err_msg=path)


def test_the_decoder_is_the_token_table():
    model = BertPretrainer(TINY)
    assert sum(v.path == "embeddings/token_embeddings" for v in model.weights) == 1
    before = np.array(model(features())["masked_lm_logits"])
    change = np.random.default_rng(0).standard_normal([30, 16])
    model.encoder.embeddings.token_table.assign_add(change)
    assert np.abs(before - np.array(model(features())["masked_lm_logits"])).max() > 0.01
