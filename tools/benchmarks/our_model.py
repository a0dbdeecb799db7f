"""Our own model as a contender: the trainer's step, plain or with the fast kernels."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tools.benchmarks.settings import Settings


def training_step(settings: Settings, kernels: str, recompute: bool = False) -> Callable[[], Any]:
    """Takes one step of the real trainer each time it is called (TensorFlow).

    Args:
        settings: the workload.
        kernels: "plain" or "fast".
        recompute: compute activations again in the backward pass instead of keeping them.
    """
    from keras_bert_impl.config import named_config
    from keras_bert_impl.models.pretrainer import BertPretrainer
    from keras_bert_impl.training.config import TrainingConfig, dtype_policy
    from keras_bert_impl.training.objectives import PretrainingObjective
    from keras_bert_impl.training.state import TrainingState
    from keras_bert_impl.training.step import TrainingStep
    from keras_bert_impl.training.strategy import make_devices

    config = TrainingConfig(
        learning_rate=1e-4,
        num_train_steps=1000,
        num_warmup_steps=10,
        batch_size=settings.batch_size,
        precision=settings.precision,
        kernels=kernels,
    )
    devices = make_devices(config)
    with devices.strategy.scope():
        model = BertPretrainer(
            named_config(settings.size, settings.vocab_size), dtype=dtype_policy(settings.precision)
        )
    model.encoder.recompute = recompute
    state = TrainingState(model, config, devices)
    objective = PretrainingObjective()
    step = TrainingStep(model, objective, state.optimizer, state.loss_scale, devices, config)
    features, number = settings.features(), 0

    def run() -> float:
        nonlocal number
        (row,) = step.run(*step.prepare([features], number, [1e-4]))
        number += 1
        return step.metrics(row)["loss"]

    return run


def jax_training_step(settings: Settings) -> Callable[[], Any]:
    """The same layers and loss on JAX, compiled as a whole, with Keras' AdamW."""
    import jax
    import keras

    from keras_bert_impl.config import named_config
    from keras_bert_impl.layers.dropout import random_address
    from keras_bert_impl.models.pretrainer import BertPretrainer
    from keras_bert_impl.optimizers.bert_adamw import BertAdamW
    from keras_bert_impl.training.objectives import PretrainingObjective

    policy = "mixed_bfloat16" if settings.precision == "bfloat16" else "float32"
    model = BertPretrainer(named_config(settings.size, settings.vocab_size), dtype=policy)
    optimizer = BertAdamW(1e-4)
    optimizer.build(model.trainable_variables)
    features, objective = settings.features(), PretrainingObjective()
    normalizers = objective.normalizers(features)

    def loss_of(weights: Any, rest: Any, number: Any) -> Any:
        with random_address(keras.ops.stack([number * 0, number, number * 0, number * 0])):
            outputs, _ = model.stateless_call(weights, rest, features, training=True)
        return objective.loss(outputs, features, normalizers)[0]

    @jax.jit
    def step(weights: Any, rest: Any, slots: Any, number: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(weights, rest, number)
        norm = jax.numpy.sqrt(sum(jax.numpy.sum(part * part) for part in gradients))
        gradients = [part / jax.numpy.maximum(norm, 1.0) for part in gradients]
        weights, slots = optimizer.stateless_apply(slots, gradients, weights)
        return loss, weights, slots

    state = [
        [variable.value for variable in variables]
        for variables in (
            model.trainable_variables,
            model.non_trainable_variables,
            optimizer.variables,
        )
    ]
    number = 0

    def run() -> float:
        nonlocal number
        loss, state[0], state[2] = step(*state, np.int32(number))
        number += 1
        return float(loss)

    return run


def inference(settings: Settings, kernels: str) -> Callable[[], Any]:
    """Computes the encoder's outputs of one batch each time it is called.

    Args:
        settings: the workload.
        kernels: "plain", the model as it is, or "frozen", as `fast_path.frozen` makes it.
    """
    import keras

    from keras_bert_impl.config import named_config
    from keras_bert_impl.fast_path.switch import choose_kernels
    from keras_bert_impl.models.encoder import BertEncoder

    choose_kernels("plain")
    policy = "mixed_bfloat16" if settings.precision == "bfloat16" else "float32"
    model = BertEncoder(named_config(settings.size, settings.vocab_size), dtype=policy)
    features = {name: settings.features()[name] for name in model.input}
    if keras.backend.backend() == "jax":
        import jax

        weights = [
            [variable.value for variable in variables]
            for variables in (model.trainable_variables, model.non_trainable_variables)
        ]
        call = jax.jit(lambda *state: model.stateless_call(*state, features)[0])
        return lambda: np.asarray(call(*weights)["pooled_output"].astype("float32"))
    import tensorflow as tf

    from keras_bert_impl.fast_path.frozen import freeze

    compute = freeze(model) if kernels == "frozen" else tf.function(model)  # outside of training
    batch = {name: tf.constant(array) for name, array in features.items()}
    return lambda: np.asarray(compute(batch)["pooled_output"])
