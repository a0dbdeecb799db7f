"""Gradients of the pre-training loss on whatever backend runs, by the variables' paths."""

import contextlib

import keras
import numpy as np
from keras import ops

from keras_bert_impl.layers.random_address import random_address


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
    find = {"tensorflow": _tensorflow, "jax": _jax}[keras.backend.backend()]
    return find(model, batch, address)


def _place(address):
    return random_address(address) if address is not None else contextlib.nullcontext()


def _tensorflow(model, batch, address):
    import tensorflow as tf

    variables = model.trainable_variables

    @tf.function
    def compute():
        with _place(address), tf.GradientTape() as tape:
            outputs = model(batch, training=address is not None)
            loss = pretraining_loss(outputs, batch)
            gradients = tape.gradient(loss, [variable.value for variable in variables])
        return [tf.convert_to_tensor(gradient) for gradient in gradients]

    return {v.path: g.numpy() for v, g in zip(variables, compute(), strict=True)}


def _jax(model, batch, address):
    import jax

    rest = [variable.value for variable in model.non_trainable_variables]

    def loss(weights):
        with _place(address):
            outputs, _ = model.stateless_call(weights, rest, batch, training=address is not None)
        return pretraining_loss(outputs, batch)

    gradients = jax.grad(loss)([variable.value for variable in model.trainable_variables])
    paths = [variable.path for variable in model.trainable_variables]
    return {path: np.array(g) for path, g in zip(paths, gradients, strict=True)}
