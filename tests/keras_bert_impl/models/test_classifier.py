import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.checkpoints.task_settings import with_task_settings
from keras_bert_impl.cpu_kernels.inference import inference_function
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.head_settings import pooling_of
from keras_bert_impl.serving.opened_model import open_model
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.numpy_bert import NumpyBert
from tests.support.tiny_bert import TINY, VOCABULARY, features, scatter_weights

takes_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="takes TensorFlow's gradients"
)


def numpy_logits(folder, batch, pooling):
    """What the written weights give, in float64."""
    reference = NumpyBert(folder)
    inputs = [batch[name] for name in ("input_ids", "input_mask", "segment_ids")]
    sequence, mask = reference.encode(*inputs)[-1], batch["input_mask"][:, :, None]
    means = (sequence * mask).sum(1) / mask.sum(1)
    return reference.class_logits({"cls": sequence[:, 0], "mean": means}[pooling])


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_poolings_are_those_of_an_independent_model_and_kept(pooling, tmp_path):
    batch, model = features(batch=3), BertClassifier(TINY, num_labels=3, pooling=pooling)
    scatter_weights(model).save_pretrained(tmp_path / "model", TextSettings(VOCABULARY))
    expected = numpy_logits(tmp_path / "model", batch, pooling)
    again = BertClassifier.from_pretrained(tmp_path / "model")
    assert pooling_of(again.config) == pooling
    copied = BertClassifier.from_config(model.get_config())
    copied.set_weights(model.get_weights())
    for one in (model, again, copied):
        np.testing.assert_allclose(one(batch, training=False)["logits"], expected, atol=2e-5)
    if keras.backend.backend() == "tensorflow":
        fast = inference_function(model)(batch)["logits"]
        np.testing.assert_allclose(fast, expected, atol=2e-4)
    pooler = BertClassifier.from_pretrained(tmp_path / "model", pooling="pooler")
    assert np.abs(np.array(pooler(batch)["logits"]) - expected).max() > 1e-2


@pytest.mark.parametrize(("mean", "deviation"), [(1e6, 1.0), (1e-6, 1e-7)])
def test_a_regression_rounds_as_the_one_that_was_trained(mean, deviation, tmp_path):
    """A weight of numbers around 1e6 takes the digits from those that are added to it."""
    config = with_task_settings(TINY, {"label_units": [mean, deviation]})
    trained = scatter_weights(BertClassifier(config, 1))
    assert trained.label_units == (mean, deviation)
    trained.save_pretrained(tmp_path / "model", TextSettings(VOCABULARY))
    batch = features(batch=64)
    expected = np.array(trained(batch, training=False)["logits"])
    again = BertClassifier.from_pretrained(tmp_path / "model")
    step = max(np.spacing(np.float32(mean)), 1e-5 * deviation)
    for one in (again, open_model(tmp_path / "model").model):
        found = np.array(one(batch, training=False)["logits"])
        np.testing.assert_allclose(found, expected, rtol=0, atol=step)
        assert len(np.unique(found)) >= 0.9 * len(np.unique(expected))
    # What it holds is a model like any other.
    plain = NumpyBert(tmp_path / "model")
    inputs = [batch[name] for name in ("input_ids", "input_mask", "segment_ids")]
    logits = plain.class_logits(plain.pooled(plain.encode(*inputs)[-1]))
    np.testing.assert_allclose(logits, expected, rtol=0, atol=2 * step)


@takes_tensorflow
def test_the_poolers_weights_get_no_gradient_and_all_others_do():
    model = scatter_weights(BertClassifier(TINY, num_labels=3, pooling="mean"))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(features())["logits"] ** 2)
    gradients = tape.gradient(loss, [variable.value for variable in model.trainable_variables])
    without = {
        variable.path
        for variable, gradient in zip(model.trainable_variables, gradients, strict=True)
        if gradient is None
    }
    assert without == {variable.path for variable in model.encoder.pooler.weights}


def test_a_pooling_that_does_not_exist_is_refused():
    with pytest.raises(UserError, match="`pooling=first` is unknown; choose pooler, cls, mean"):
        BertClassifier(TINY, num_labels=2, pooling="first")
    config = TINY.replace(extra={"classifier_pooling": "sum"})
    with pytest.raises(UserError, match="classifier_pooling is 'sum'; it must be one of"):
        BertClassifier(config, num_labels=2)
