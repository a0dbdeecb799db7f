"""BertAdamW beside the formula in float64 NumPy; weight decay beside the original's."""

import re

import keras
import numpy as np
import pytest

from keras_bert_impl.checkpoints.restore import names_of
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.optimizers.bert_adamw import BertAdamW, Lamb, is_decayed
from tests.support.adamw_formula import DECAY, RATE, keras_steps, numpy_steps
from tests.support.tiny_bert import TINY

LEFT_OUT = re.compile("LayerNorm|layer_norm|bias")  # of the original's names


@pytest.fixture
def start():
    draws = np.random.default_rng(0)
    weight = draws.normal(size=[3, 4]).astype("float32")
    return weight, [draws.normal(size=[3, 4]).astype("float32") for _ in range(5)]


@pytest.mark.parametrize("bias_correction", [False, True])
@pytest.mark.parametrize(("name", "decay"), [("kernel", DECAY), ("bias", 0.0)])
def test_adamw_is_the_formula_and_leaves_biases_undecayed(start, name, decay, bias_correction):
    optimizer = BertAdamW(RATE, weight_decay=DECAY, bias_correction=bias_correction)
    expected = numpy_steps(*start, decay, bias_correction)
    np.testing.assert_allclose(keras_steps(optimizer, name, *start), expected, rtol=1e-5)


def test_lower_layers_learn_more_slowly():
    optimizer = BertAdamW(RATE, weight_decay=0.0, layer_decay=0.5)
    paths = ["embeddings", "layer_0", "layer_1", "classifier"]
    variables = []
    for path in paths:
        with keras.name_scope(path):
            variables.append(keras.Variable(np.zeros(1, "float32"), name="kernel"))
    optimizer.apply([np.ones(1, "float32")] * 4, variables)
    moves = np.array([float(np.array(variable)[0]) for variable in variables])
    np.testing.assert_allclose(moves / moves[-1], [0.125, 0.25, 0.5, 1.0], rtol=1e-6)


@pytest.mark.parametrize("kind", [BertAdamW, Lamb])
def test_an_optimizer_can_be_made_again_from_its_config(kind):
    optimizer = kind(RATE, weight_decay=0.02, bias_correction=True, layer_decay=0.9)
    again = kind.from_config(optimizer.get_config())
    assert again.get_config() == optimizer.get_config()


def test_it_works_in_plain_keras_fit():
    inputs = np.random.default_rng(0).normal(size=[64, 3]).astype("float32")
    targets = inputs @ np.array([[1.0], [-2.0], [0.5]], "float32")
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(BertAdamW(learning_rate=0.05, weight_decay=0.0), "mse")
    losses = model.fit(inputs, targets, epochs=30, verbose=0).history["loss"]
    assert losses[-1] < losses[0] / 10


def test_every_variable_is_decayed_or_not_as_under_its_original_name():
    model = BertPretrainer(TINY)
    names = {each.ours: each.google for each in names_of(model)}
    paths = [variable.path for variable in model.trainable_variables]
    assert sorted(names) == sorted(paths)
    assert {p: is_decayed(p) for p in paths} == {p: not LEFT_OUT.search(names[p]) for p in paths}
    assert not is_decayed(next(p for p, name in names.items() if name.endswith("output_bias")))


@pytest.mark.parametrize("clip", ["global_clipnorm", None])
def test_fit_clips_and_squares_the_summed_gradient_of_a_table(clip):
    """A token that stands four times in a batch has one gradient, the sum of four rows."""
    ids = np.array([[1, 1, 1, 2], [1, 3, 2, 2]])
    targets = np.array([[1.0], [-2.0]], "float32")

    def trained(looked_up):
        keras.utils.set_random_seed(0)
        table = keras.layers.Embedding(5, 3, name="table")
        inputs = keras.Input([4], dtype="int32")
        if looked_up:
            vectors = table(inputs)
        else:  # a product, whose gradient is one tensor
            vectors = keras.layers.Dense(3, use_bias=False, name="table")(
                keras.layers.CategoryEncoding(5, output_mode="one_hot")(inputs)
            )
        total = keras.layers.GlobalAveragePooling1D()(vectors)
        model = keras.Model(inputs, keras.layers.Dense(1)(total))
        draws = np.random.default_rng(1)
        for variable in model.weights:
            variable.assign(draws.normal(size=variable.shape))
        model.compile(BertAdamW(0.01, **({clip: 0.1} if clip else {})), "mse")
        model.fit(ids, targets, epochs=5, batch_size=2, verbose=0)
        return [np.array(variable) for variable in model.weights]

    for found, expected in zip(trained(True), trained(False), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_without_a_first_moment_the_bias_of_the_second_is_corrected():
    weight = keras.Variable([1.0], name="kernel")
    optimizer = BertAdamW(0.1, weight_decay=0.0, beta_1=0.0, bias_correction=True)
    optimizer.apply([keras.ops.convert_to_tensor([2.0])], [weight])
    assert float(weight.numpy()[0]) == pytest.approx(0.9, abs=1e-6)


def test_what_is_decayed_cannot_be_chosen():
    with pytest.raises(UserError, match="BertAdamW decays all but biases and LayerNorm; take"):
        BertAdamW().exclude_from_weight_decay(var_names=["embeddings"])
