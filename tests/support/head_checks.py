"""What every model with a head must do, whatever the head."""

import keras
import numpy as np
from keras import ops

from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.checkpoints.restore import restore
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.gradients import assert_slopes, gradients_of
from tests.support.numpy_bert import NumpyBert
from tests.support.tiny_bert import VOCABULARY, scatter_weights

TEXT = TextSettings(VOCABULARY)


def check_outputs(model, batch, shapes):
    """Outputs are float32 of the shapes that are promised."""
    outputs = model(batch)
    assert {name: tuple(value.shape) for name, value in outputs.items()} == shapes
    assert {keras.backend.standardize_dtype(v.dtype) for v in outputs.values()} == {"float32"}


def check_saving(make_model, batch, folder):
    """A model survives `.keras` and the model directory, bit by bit."""
    model = scatter_weights(make_model())
    expected = {name: np.array(value) for name, value in model(batch).items()}
    model.save(folder / "model.keras")
    write_model_directory(folder / "model", model, TEXT)
    restored = scatter_weights(make_model(), seed=9)
    report = restore(restored, folder / "model")
    assert (report.new, report.ignored) == ((), ())
    for again in (keras.models.load_model(folder / "model.keras"), restored):
        for name, value in again(batch).items():
            assert np.array_equal(value, expected[name])


def check_against_numpy(model, head, batch, folder):
    """Outputs and gradients are those of an independent model."""
    write_model_directory(folder / "model", scatter_weights(model), TEXT)
    reference = NumpyBert(folder / "model")
    expected, draw = reference.head_outputs(head, batch), np.random.default_rng(4)
    for name, value in model(batch).items():
        np.testing.assert_allclose(np.array(value), expected[name], atol=1e-5)
    # A loss that weighs every output by a number of its own.
    factors = {name: draw.standard_normal(value.shape) for name, value in expected.items()}

    def loss(outputs):
        return sum(ops.sum(outputs[name] * factors[name].astype("float32")) for name in factors)

    def reference_loss():
        outputs = reference.head_outputs(head, batch)
        return sum((outputs[name] * factors[name]).sum() for name in factors)

    theirs = "qa_outputs" if head == "span" else "classifier"
    names = [
        (f"{head}/dense/kernel", f"{theirs}.weight", True),
        (f"{head}/dense/bias", f"{theirs}.bias", False),
        ("embeddings/token_embeddings", "embeddings.word_embeddings.weight", False),
        ("embeddings/position_embeddings", "embeddings.position_embeddings.weight", False),
        ("layer_0/attention/query/kernel", "encoder.layer.0.attention.self.query.weight", True),
        ("layer_1/attention/value/bias", "encoder.layer.1.attention.self.value.bias", False),
        ("layer_1/intermediate/kernel", "encoder.layer.1.intermediate.dense.weight", True),
        ("layer_1/output_layer_norm/gamma", "encoder.layer.1.output.LayerNorm.weight", False),
    ]
    if head in ("classifier", "choice"):
        names.append(("pooler/dense/kernel", "pooler.dense.weight", True))
    assert_slopes(reference, gradients_of(model, batch, loss), names, reference_loss)
