"""The contenders of the model benchmark: our model, KerasHub and Hugging Face PyTorch.

Each is a function that makes one step, or one batch of inference, whenever it is called; the peers
run in their best settings for CPUs.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tools.benchmarks.workload import Workload, matrix_products


def training_step(workload: Workload, kernels: str, recompute: bool = False) -> Callable[[], Any]:
    """Takes one step of the real trainer each time it is called (TensorFlow).

    Args:
        workload: sizes, data and precision.
        kernels: "plain" or "fast".
        recompute: compute activations again in the backward pass instead of keeping them.
    """
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
        train_batch_size=workload.batch_size,
        precision=workload.precision,
        kernels=kernels,
    )
    devices = make_devices(config)
    with devices.strategy.scope():
        model = BertPretrainer(workload.config, dtype=dtype_policy(workload.precision))
    model.encoder.recompute = recompute
    state = TrainingState(model, config, devices)
    objective = PretrainingObjective()
    step = TrainingStep(state, objective, config)
    features, number = workload.features(), 0

    def run() -> float:
        nonlocal number
        (row,) = step.run(*step.prepare([features], number, [1e-4]))
        number += 1
        return step.metrics(row)["loss"]

    return run


def jax_training_step(workload: Workload) -> Callable[[], Any]:
    """The same layers and loss on JAX, compiled as a whole, with Keras' AdamW."""
    import jax
    import keras

    from keras_bert_impl.layers.dropout import random_address
    from keras_bert_impl.models.pretrainer import BertPretrainer
    from keras_bert_impl.optimizers.bert_adamw import BertAdamW
    from keras_bert_impl.training.objectives import PretrainingObjective

    policy = "mixed_bfloat16" if workload.precision == "bfloat16" else "float32"
    model = BertPretrainer(workload.config, dtype=policy)
    optimizer = BertAdamW(1e-4)
    optimizer.build(model.trainable_variables)
    features, objective = workload.features(), PretrainingObjective()
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


def inference(workload: Workload, kernels: str) -> Callable[[], Any]:
    """Computes the encoder's outputs of one batch each time it is called.

    Args:
        workload: sizes, data and precision.
        kernels: "plain", the model as it is, or "fused", as `inference_function` makes it.
    """
    import keras

    from keras_bert_impl.models.encoder import BertEncoder

    policy = "mixed_bfloat16" if workload.precision == "bfloat16" else "float32"
    model = BertEncoder(workload.config, dtype=policy)
    features = {name: workload.features()[name] for name in model.input}
    if keras.backend.backend() == "jax":
        import jax

        weights = [
            [variable.value for variable in variables]
            for variables in (model.trainable_variables, model.non_trainable_variables)
        ]
        call = jax.jit(lambda *state: model.stateless_call(*state, features)[0])
        return lambda: np.asarray(call(*weights)["pooled_output"].astype("float32"))
    import tensorflow as tf

    from keras_bert_impl.cpu_kernels.inference import inference_function

    # Called like this, a model computes outside of training.
    compute = inference_function(model) if kernels == "fused" else tf.function(model)
    batch = {name: tf.constant(array) for name, array in features.items()}
    return lambda: np.asarray(compute(batch)["pooled_output"])


def keras_hub_training_step(workload: Workload) -> Callable[[], Any]:
    """KerasHub's BERT with its masked-LM head, Keras' AdamW and compiled graph (no XLA on CPU)."""
    import keras
    import keras_hub

    encoder = _keras_hub_encoder(workload)
    positions = keras.Input((None,), dtype="int32", name="masked_lm_positions")
    head = keras_hub.layers.MaskedLMHead(
        vocabulary_size=workload.vocab_size,
        token_embedding=encoder.token_embedding,
        intermediate_activation=lambda inputs: keras.activations.gelu(inputs, approximate=True),
    )
    scores = head(encoder.output["sequence_output"], mask_positions=positions)
    scores = keras.layers.Activation("linear", dtype="float32")(scores)
    model = keras.Model({**encoder.input, "masked_lm_positions": positions}, scores)
    on_jax = keras.backend.backend() == "jax"
    model.compile(
        optimizer=keras.optimizers.AdamW(1e-4, weight_decay=0.01, global_clipnorm=1.0),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=on_jax,
    )
    features = workload.features()
    inputs = {
        **_keras_hub_inputs(features),
        "masked_lm_positions": features["masked_lm_positions"],
    }
    return lambda: model.train_on_batch(inputs, features["masked_lm_ids"])


def keras_hub_inference(workload: Workload) -> Callable[[], Any]:
    """KerasHub's encoder on one batch."""
    import tensorflow as tf

    encoder = _keras_hub_encoder(workload)
    inputs = {
        name: tf.constant(array) for name, array in _keras_hub_inputs(workload.features()).items()
    }
    compute = tf.function(encoder)  # outside of training
    return lambda: np.asarray(compute(inputs)["pooled_output"])


def torch_training_step(workload: Workload, compiled: bool = False) -> Callable[[], Any]:
    """Hugging Face's BERT under bfloat16 autocast, fused AdamW, masked positions only.

    Args:
        workload: sizes, data and precision.
        compiled: let PyTorch's Inductor compile encoder and head (needs a C++ compiler).
    """
    import torch

    model = _torch_model(workload, "BertForMaskedLM").train()
    encode, head = model.bert, model.cls
    if compiled:
        encode, head = torch.compile(encode), torch.compile(head)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, weight_decay=0.01, fused=True)
    features = {name: torch.tensor(array).long() for name, array in workload.features().items()}
    positions = features["masked_lm_positions"][..., None]

    def run() -> float:
        with _autocast(workload):
            sequence = encode(
                input_ids=features["input_ids"],
                attention_mask=features["input_mask"],
                token_type_ids=features["segment_ids"],
            ).last_hidden_state
            masked = torch.gather(sequence, 1, positions.expand(-1, -1, sequence.shape[-1]))
            scores = head(masked).float()
            loss = torch.nn.functional.cross_entropy(
                scores.view(-1, workload.vocab_size), features["masked_lm_ids"].view(-1)
            )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return float(loss)

    return run


def torch_inference(workload: Workload, compiled: bool = False) -> Callable[[], Any]:
    """Hugging Face's encoder on one batch, its weights in bfloat16 (faster than autocast).

    Args:
        workload: sizes, data and precision.
        compiled: let PyTorch's Inductor compile it with its weights frozen (needs a C++ compiler).
    """
    import torch

    model = _torch_model(workload, "BertModel").eval()
    if workload.precision == "bfloat16":
        model = model.to(torch.bfloat16)
    if compiled:
        import torch._inductor.config as inductor

        inductor.freezing = True
        model = torch.compile(model)
    features = {name: torch.tensor(array).long() for name, array in workload.features().items()}

    def run() -> Any:
        with torch.no_grad():
            return model(
                input_ids=features["input_ids"],
                attention_mask=features["input_mask"],
                token_type_ids=features["segment_ids"],
            ).pooler_output.float()

    return run


def _keras_hub_encoder(workload: Workload) -> Any:
    import keras
    import keras_hub

    if workload.precision == "bfloat16":
        keras.config.set_dtype_policy("mixed_bfloat16")
    config = workload.config
    return keras_hub.models.BertBackbone(
        config.vocab_size,
        config.num_hidden_layers,
        config.num_attention_heads,
        config.hidden_size,
        config.intermediate_size,
        dropout=0.1,
        max_sequence_length=512,
    )


def _keras_hub_inputs(features: dict[str, Any]) -> dict[str, Any]:
    return {
        "token_ids": features["input_ids"],
        "padding_mask": features["input_mask"],
        "segment_ids": features["segment_ids"],
    }


def _torch_model(workload: Workload, name: str) -> Any:
    import transformers

    ours = workload.config
    config = transformers.BertConfig(
        vocab_size=ours.vocab_size,
        num_hidden_layers=ours.num_hidden_layers,
        num_attention_heads=ours.num_attention_heads,
        hidden_size=ours.hidden_size,
        intermediate_size=ours.intermediate_size,
        attn_implementation="sdpa",
    )
    return getattr(transformers, name)(config)


def _autocast(workload: Workload) -> Any:
    import torch

    return torch.autocast("cpu", torch.bfloat16, enabled=workload.precision == "bfloat16")


Step = Callable[[], Any]
CONTENDERS: dict[str, dict[str, Callable[[Workload], Step]]] = {
    "train": {
        "ceiling": partial(matrix_products, training=True),
        "ours_fast": partial(training_step, kernels="fast"),
        "ours_plain": partial(training_step, kernels="plain"),
        "ours_recompute": partial(training_step, kernels="fast", recompute=True),
        "ours_jax": jax_training_step,
        "keras_hub": keras_hub_training_step,
        "keras_hub_jax": keras_hub_training_step,
        "torch": torch_training_step,
        "torch_compiled": partial(torch_training_step, compiled=True),
    },
    "inference": {
        "ceiling": partial(matrix_products, training=False),
        "ours_fast": partial(inference, kernels="fused"),
        "ours_plain": partial(inference, kernels="plain"),
        "ours_jax": partial(inference, kernels="plain"),
        "keras_hub": keras_hub_inference,
        "torch": torch_inference,
        "torch_compiled": partial(torch_inference, compiled=True),
    },
}
