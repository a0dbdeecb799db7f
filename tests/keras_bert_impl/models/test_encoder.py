import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.checkpoints.restore import restore
from keras_bert_impl.cpu_kernels.inference import inference_function
from keras_bert_impl.cpu_kernels.training import TrainingKernels
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.head_settings import with_bilstm
from keras_bert_impl.models.multiple_choice import BertMultipleChoice
from keras_bert_impl.models.token_models import BertSpanLabeler, BertTokenClassifier
from keras_bert_impl.serving.opened_model import open_model
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from keras_bert_impl.tokenization.text_settings import TextSettings
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
# Hidden numbers are of size 1 after LayerNorm; bfloat16 has 8 bits, and two blocks add up.
BFLOAT16_BOUND = 0.06
QUIET = TINY.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
takes_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="compares TensorFlow's ways to compute"
)


def golden_outputs(**options):
    encoder = BertEncoder(golden_config(), return_all_layers=True, **options)
    restore(encoder, CHECKPOINT)
    outputs = encoder(golden_inputs())
    return {name: np.array(ops.cast(value, "float32")) for name, value in outputs.items()}


def largest_difference(outputs, file, name):
    with np.load(GOLDEN / "forward" / file) as arrays:
        return np.abs(outputs[name] - arrays[name]).max()


def test_every_layer_is_the_original_s():
    outputs = golden_outputs()
    assert largest_difference(outputs, "layers.npz", "embedding_output") < 1e-5
    assert largest_difference(outputs, "layers.npz", "all_encoder_layers") < 1e-5
    assert largest_difference(outputs, "heads.npz", "pooled_output") < 1e-5
    assert np.array_equal(outputs["all_encoder_layers"][-1], outputs["sequence_output"])


def test_bfloat16_stays_within_its_bound():
    outputs = golden_outputs(dtype="mixed_bfloat16")
    error = largest_difference(outputs, "layers.npz", "all_encoder_layers")
    assert 0 < error < BFLOAT16_BOUND
    assert largest_difference(outputs, "heads.npz", "pooled_output") < BFLOAT16_BOUND


def test_padding_changes_nothing_but_rounding():
    encoder = scatter_weights(BertEncoder(TINY))
    batch = features(length=8)
    padded = {name: np.pad(batch[name], [(0, 0), (0, 5)]) for name in list(batch)[:3]}
    short, long = encoder(batch)["sequence_output"], encoder(padded)["sequence_output"]
    np.testing.assert_allclose(np.array(long)[:, :8], short, atol=1e-5)


def plain(encoder):
    return lambda batch: encoder(batch)["sequence_output"]


def in_training(encoder):
    encoder.kernels = TrainingKernels()
    return lambda batch: encoder(batch, training=True)["sequence_output"]


def in_inference(encoder):
    run = inference_function(encoder)
    return lambda batch: run(batch)["sequence_output"]


def under_xla(encoder):
    run = tf.function(
        lambda batch: encoder(batch)["sequence_output"], jit_compile=True, autograph=False
    )
    return lambda batch: run({name: tf.constant(array) for name, array in batch.items()})


@takes_tensorflow
@pytest.mark.parametrize("way", [plain, in_training, in_inference, under_xla])
@pytest.mark.parametrize("direction", ["causal", "anticausal"])
def test_no_bit_leaks_from_the_hidden_side_of_a_token(direction, way):
    encoder = BertEncoder(QUIET.replace(**{direction: True}))
    encode = way(scatter_weights(encoder))
    batch = {name: array for name, array in features(length=8).items() if name in ENCODER_INPUTS}
    before = np.array(encode(batch), np.float32)
    changed = {**batch, "input_ids": batch["input_ids"].copy()}
    changed["input_ids"][:, 3] = (batch["input_ids"][:, 3] + 1) % TINY.vocab_size
    after = np.array(encode(changed), np.float32)
    blind, tokens = (slice(0, 3), slice(3, 6)) if direction == "causal" else (slice(4, 6), slice(4))
    np.testing.assert_array_equal(before[:, blind], after[:, blind])
    assert np.abs(before[:, tokens] - after[:, tokens]).max(axis=-1).all()  # the others see it


def test_the_configuration_rebuilds_the_model_with_its_precision():
    encoder = BertEncoder(TINY, return_all_layers=True, recompute=True, dtype="mixed_bfloat16")
    again = BertEncoder.from_config(encoder.get_config())
    assert again.get_config() == encoder.get_config()
    assert again.blocks[0].compute_dtype == "bfloat16"
    assert [v.path for v in again.weights] == [v.path for v in encoder.weights]


def test_inputs_have_the_names_of_the_features_and_summary_works():
    encoder = BertEncoder(TINY)
    assert sorted(encoder.input) == ["input_ids", "input_mask", "segment_ids"]
    lines = []
    encoder.summary(print_fn=lambda line, **_: lines.append(line))
    assert f"{encoder.count_params():,}" in "\n".join(lines)


RECURRENT = with_bilstm(QUIET.replace(causal=True), True)


def logits(model, batch):
    return np.array(model(batch)["logits"], np.float64)


def test_the_last_token_goes_through_the_pooler_as_the_first_one_does():
    model = scatter_weights(BertClassifier(QUIET.replace(causal=True), 3, pooling="last"))
    batch, last = features(), [5, 7]  # row 0 ends with two positions of padding
    weights = {weight.path: np.array(weight, np.float64) for weight in model.weights}
    sequence = np.array(model.encoder(batch)["sequence_output"], np.float64)[[0, 1], last]
    pooled = np.tanh(sequence @ weights["pooler/dense/kernel"] + weights["pooler/dense/bias"])
    expected = pooled @ weights["classifier/dense/kernel"] + weights["classifier/dense/bias"]
    np.testing.assert_allclose(logits(model, batch), expected, atol=1e-5)


def test_with_a_bilstm_every_head_sees_both_sides_of_a_left_to_right_encoder():
    batch = features()
    changed = {**batch, "input_ids": batch["input_ids"].copy()}
    changed["input_ids"][:, 4] = (batch["input_ids"][:, 4] + 1) % TINY.vocab_size
    tagger = scatter_weights(BertTokenClassifier(RECURRENT, 3))
    assert np.abs(logits(tagger, batch) - logits(tagger, changed))[:, 0].max() > 1e-6
    blind = scatter_weights(BertTokenClassifier(QUIET.replace(causal=True), 3))
    np.testing.assert_array_equal(logits(blind, batch)[:, :4], logits(blind, changed)[:, :4])


@pytest.mark.parametrize(
    "make",
    [
        lambda: BertClassifier(RECURRENT, 3),
        lambda: BertSpanLabeler(RECURRENT),
        lambda: BertMultipleChoice(RECURRENT, 2),
    ],
)
def test_a_model_directory_keeps_the_bilstm_and_is_no_bert_for_others(make, tmp_path):
    model = scatter_weights(make())
    write_model_directory(tmp_path / "model", model, TextSettings(VOCABULARY))
    written = json.loads((tmp_path / "model" / "config.json").read_text())
    assert (written["model_type"], written["encoder_bilstm"]) == ("keras_bert_impl", True)
    again = make()
    report = restore(again, tmp_path / "model")
    assert (report.new, report.ignored) == ((), ())
    for one, other in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(np.array(one), np.array(other), err_msg=one.path)


def test_a_classifier_with_a_bilstm_is_opened_and_saved_as_it_is(tmp_path):
    model = scatter_weights(BertClassifier(RECURRENT, 3))
    write_model_directory(tmp_path / "model", model, TextSettings(VOCABULARY))
    batch = {name: features()[name] for name in model.input}
    expected = logits(model, batch)
    np.testing.assert_array_equal(logits(open_model(tmp_path / "model").model, batch), expected)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(logits(again, batch), expected)


@takes_tensorflow
def test_the_graph_for_inference_has_the_bilstm():
    model = scatter_weights(BertClassifier(RECURRENT, 3))
    batch = {name: features()[name] for name in model.input}
    served = inference_function(model)(batch)["logits"]
    np.testing.assert_allclose(np.array(served), logits(model, batch), atol=1e-5)


def test_an_odd_width_cannot_be_halved():
    odd = RECURRENT.replace(hidden_size=15, num_attention_heads=1)
    with pytest.raises(UserError, match="hidden_size 15 is odd"):
        BertTokenClassifier(odd, 3)
