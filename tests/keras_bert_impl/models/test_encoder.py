import keras
import numpy as np
import pytest
from keras import ops

from keras_bert_impl.checkpoints.restore import restore
from keras_bert_impl.models.encoder import BertEncoder
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


def test_causal_attention_sees_no_later_token():
    encoder = scatter_weights(BertEncoder(TINY.replace(causal=True)))
    batch = features(batch=1, length=6)
    batch["input_mask"][:] = 1
    before = np.array(encoder(batch)["sequence_output"])
    batch["input_ids"][0, 4] = (batch["input_ids"][0, 4] + 1) % TINY.vocab_size
    after = np.array(encoder(batch)["sequence_output"])
    assert np.array_equal(before[0, :4], after[0, :4])
    assert np.abs(before[0, 4:] - after[0, 4:]).min(axis=1).max() > 0


def test_a_saved_model_gives_the_same_vectors(tmp_path):
    encoder = scatter_weights(BertEncoder(TINY, return_all_layers=True))
    encoder.save(tmp_path / "encoder.keras")
    again = keras.models.load_model(tmp_path / "encoder.keras")
    assert again.config == TINY
    batch = features()
    for name, value in encoder(batch).items():
        assert np.array_equal(value, again(batch)[name])


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


def test_what_decays_can_be_told_from_the_path():
    paths = [variable.path for variable in BertEncoder(TINY).weights]
    decayed = [p for p in paths if not p.endswith(("bias", "gamma", "beta"))]
    assert len(paths) == 5 + 16 * TINY.num_hidden_layers + 2
    assert all(p.endswith(("/kernel", "_embeddings")) for p in decayed)
    assert all("layer_norm" in p for p in paths if p.endswith(("gamma", "beta")))


@pytest.mark.parametrize("activation", ["gelu_tanh", "gelu_erf", "relu"])
def test_the_activation_is_the_one_that_was_asked_for(activation):
    encoder = BertEncoder(TINY.replace(hidden_act=activation))
    wide = encoder.blocks[0].intermediate
    wide.kernel.assign(np.eye(*wide.kernel.shape))
    inputs = np.linspace(-3, 3, 16, dtype=np.float32)[None]
    expected = {"gelu_tanh": -0.0454023, "gelu_erf": -0.0455003, "relu": 0.0}[activation]
    value = np.array(wide(np.full_like(inputs, -2.0)))[0, 0]
    assert abs(value - expected) < 1e-6
