import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.training.evaluation import Evaluation, Prediction
from tests.support.array_batches import ArrayEvaluation
from tests.support.toy_training import ToyObjective, toy_features, toy_model


def evaluate(model, source):
    return Evaluation(model, ToyObjective())(source)


def predicted_logits(model, source, strategy=None):
    batches = Prediction(model, ("x",), strategy)(source)
    return np.concatenate([outputs["logits"] for outputs in batches])


def test_evaluation_counts_every_example_once_however_it_is_batched():
    model, features = toy_model(), toy_features(10)
    sizes = [evaluate(model, ArrayEvaluation(features, size)) for size in (1, 4, 10)]
    assert sizes[1] == pytest.approx(sizes[0])
    assert sizes[2] == pytest.approx(sizes[0])


def test_predictions_are_given_for_real_rows_only_and_in_order():
    model, features = toy_model(), toy_features(7)
    logits = predicted_logits(model, ArrayEvaluation(features, 4))
    expected = model({"x": features["x"]})["logits"]
    # Batches of other sizes are added up in another order.
    np.testing.assert_allclose(logits, expected, rtol=1e-6, atol=1e-7)


def test_each_shape_of_a_batch_is_compiled_once():
    model, features = toy_model(), toy_features(7)
    prediction = Prediction(model, ("x",))
    for batch_size in (4, 4, 2):
        list(prediction(ArrayEvaluation(features, batch_size)))
    assert prediction._outputs.experimental_get_tracing_count() == 2


def test_batches_of_several_lengths_take_one_trace():
    inputs = keras.Input([None], name="x")
    model = keras.Model({"x": inputs}, {"logits": 2 * inputs})
    prediction = Prediction(model, ("x",))
    for length in (3, 5, 8):
        source = ArrayEvaluation({"x": toy_features(4)["x"][:, :length]}, 4)
        source.open_features = frozenset({"x"})
        [outputs] = prediction(source)
        np.testing.assert_allclose(outputs["logits"], 2 * source.features["x"])
    assert prediction._outputs.experimental_get_tracing_count() == 1


def test_the_figures_are_those_of_numpy():
    model, features = toy_model(), toy_features(11)
    figures = evaluate(model, ArrayEvaluation(features, 4))
    logits = np.asarray(model({"x": features["x"]})["logits"], np.float64)
    labels = features["label_ids"]
    log_shares = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    assert figures["loss"] == pytest.approx(-log_shares[np.arange(11), labels].mean(), rel=1e-5)
    assert figures["accuracy"] == pytest.approx((logits.argmax(-1) == labels).mean())


def test_an_evaluation_measures_the_weights_of_its_moment():
    model, features = toy_model(), toy_features(11)
    evaluation, source = Evaluation(model, ToyObjective()), ArrayEvaluation(features, 4)
    before = evaluation(source)
    model.set_weights([weight + 1.0 for weight in model.get_weights()])
    assert evaluation(source) == evaluate(model, source)
    assert evaluation(source) != before


def test_a_model_of_a_strategy_gives_the_same_outputs():
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    with strategy.scope():
        model = toy_model()
    features = toy_features(7)
    logits = predicted_logits(model, ArrayEvaluation(features, 4), strategy)
    expected = model({"x": features["x"]})["logits"]
    np.testing.assert_allclose(logits, expected, rtol=1e-6, atol=1e-7)
