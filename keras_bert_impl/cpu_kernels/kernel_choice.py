"""The choice of the fastest kernels, and of the fastest inference, on this machine."""

from collections.abc import Callable, Mapping
from typing import Any

import keras

from keras_bert_impl.backend import JAX
from keras_bert_impl.cpu_kernels.xla_programs import (
    accelerated,
    safe_in_threads,
    warn_of_slower_kernels,
)
from keras_bert_impl.errors import UserError
from keras_bert_impl.layers import kernels
from keras_bert_impl.layers.flash_kernels import FlashKernels

CHOICES = ("auto", "plain", "fast")


def choose_kernels(choice: str = "auto", use_xla: bool = False) -> kernels.PlainKernels:
    """Chooses between plain and fast kernels for a model.

    "auto" takes the fast ones where they are faster: on TensorFlow, without a GPU or TPU, where
    the step as a whole is not compiled by XLA; on JAX with a GPU for cuDNN's it takes
    `FlashKernels`, which want padding after the tokens. Where XLA was used before in this process,
    in a way that threads cannot share its programs, the plain ones are taken whatever the choice.
    """
    if choice not in CHOICES:
        raise UserError(f"kernels {choice!r}: no such choice; take one of {', '.join(CHOICES)}.")
    backend = keras.backend.backend()
    on_tensorflow = backend == "tensorflow"
    if choice == "fast" and not on_tensorflow:
        fault = f"they exist for TensorFlow, not for {backend}"
        raise UserError(f"kernels 'fast': {fault}; take 'plain' or 'auto'.")
    is_faster = on_tensorflow and not use_xla and not accelerated()
    fast = choice == "fast" or (choice == "auto" and is_faster)
    if fast and not safe_in_threads():
        warn_of_slower_kernels()
        fast = False
    if not fast:
        return FlashKernels() if choice == "auto" and _on_jax_gpu() else kernels.PLAIN
    # Imported here: it needs TensorFlow, and models may run on another backend.
    from keras_bert_impl.cpu_kernels.training import TrainingKernels

    return TrainingKernels()


def _on_jax_gpu() -> bool:
    """Whether cuDNN has flash attention for JAX's device: NVIDIA's, from Ampere on."""
    if keras.backend.backend() != JAX:
        return False
    import jax

    device = jax.devices()[0]
    if device.platform != "gpu":
        return False
    major = str(device.compute_capability).partition(".")[0]  # "8.0"; AMD's are "gfx90a"
    return major.isdecimal() and int(major) >= 8


def forward_function(
    model: Any, may_be_trained: bool = False
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """The fastest way here to compute a model's outputs outside of training.

    On TensorFlow without a GPU or TPU that is `inference_function`, with the present weights, or a
    graph that reads those of each call; elsewhere it is Keras' own prediction.
    """
    if keras.backend.backend() != "tensorflow" or accelerated():
        return model.predict_on_batch
    if may_be_trained:
        import tensorflow as tf

        return tf.function(model, reduce_retracing=True)  # called like this, outside of training
    from keras_bert_impl.cpu_kernels.inference import inference_function

    return inference_function(model)
