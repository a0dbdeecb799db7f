"""Gradients of the pre-training loss on whatever backend runs, by the variables' paths."""

import contextlib

import keras
import numpy as np
from keras import ops

from keras_bert_impl.layers.dropout import random_address


def pretraining_loss(outputs, batch):
    """Masked-LM loss over the weights' sum plus the mean next-sentence loss."""
    masked = ops.sparse_categorical_crossentropy(
        batch["masked_lm_ids"], outputs["masked_lm_logits"], from_logits=True
    )
    weights = ops.convert_to_tensor(batch["masked_lm_weights"])
    following = ops.sparse_categorical_crossentropy(
        batch["next_sentence_labels"][:, 0], outputs["next_sentence_logits"], from_logits=True
    )
    return ops.sum(masked * weights) / ops.sum(weights) + ops.mean(following)


def gradients_of_pretraining_loss(model, batch, address=None):
    """{path: gradient}, NumPy; in training mode at `address`, else without dropout."""
    return gradients_of(model, batch, lambda outputs: pretraining_loss(outputs, batch), address)


def gradients_of(model, batch, loss, address=None):
    """{path: gradient} of `loss(outputs)`, NumPy; in training mode at `address`."""
    find = {"tensorflow": _tensorflow, "jax": _jax}[keras.backend.backend()]
    return find(model, batch, loss, address)


def assert_slopes(reference, gradients, names, loss):
    """Holds gradients against central differences of an independent float64 model.

    A direction at random: one difference checks all numbers of a weight at once.

    Args:
        reference: the `NumpyBert`.
        gradients: by our paths.
        names: (our path, the reference's name, whether it is turned) of the weights to check.
        loss: gives the reference's loss.
    """
    largest = max(np.abs(gradient).max() for gradient in gradients.values())
    draw = np.random.default_rng(1)
    for ours, theirs, turned in names:
        weight, gradient = reference.tensors[theirs], gradients[ours]
        gradient = gradient.T if turned else gradient
        assert weight.shape == gradient.shape
        direction = draw.standard_normal(weight.shape)
        direction /= np.linalg.norm(direction)
        slope = _central_difference(reference, theirs, direction, loss)
        assert abs(slope - (gradient * direction).sum()) < 1e-4 * max(1.0, largest), ours


def _central_difference(reference, name, direction, loss, width=1e-5):
    """The slope of the loss along a direction of one weight, in float64."""
    weight, losses = reference.tensors[name], []
    for sign in (1, -1):
        reference.tensors[name] = weight + sign * width * direction
        losses.append(loss())
    reference.tensors[name] = weight
    return (losses[0] - losses[1]) / (2 * width)


def _place(address):
    return random_address(address) if address is not None else contextlib.nullcontext()


def _tensorflow(model, batch, loss_of, address):
    import tensorflow as tf

    variables = model.trainable_variables

    @tf.function(autograph=False)
    def compute():
        with _place(address), tf.GradientTape() as tape:
            outputs = model(batch, training=address is not None)
            loss = loss_of(outputs)
            gradients = tape.gradient(loss, [variable.value for variable in variables])
        # A head on single positions leaves the pooler without gradient.
        return [
            0.0 if gradient is None else tf.convert_to_tensor(gradient) for gradient in gradients
        ]

    return {v.path: g.numpy() for v, g in zip(variables, compute(), strict=True)}


def _jax(model, batch, loss_of, address):
    import jax

    rest = [variable.value for variable in model.non_trainable_variables]

    def loss(weights):
        with _place(address):
            outputs, _ = model.stateless_call(weights, rest, batch, training=address is not None)
        return loss_of(outputs)

    gradients = jax.grad(loss)([variable.value for variable in model.trainable_variables])
    paths = [variable.path for variable in model.trainable_variables]
    return {path: np.array(g) for path, g in zip(paths, gradients, strict=True)}
