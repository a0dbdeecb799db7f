import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_bert_impl.checkpoints.restore import restore
from keras_bert_impl.cpu_kernels.inference import inference_function
from keras_bert_impl.cpu_kernels.training import TrainingKernels
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from tests.support.tiny_bert import (
    GOLDEN,
    TINY,
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
    run = tf.function(lambda batch: encoder(batch)["sequence_output"], jit_compile=True)
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
