"""The peers of a benchmark: KerasHub and Hugging Face PyTorch, each in its best CPU setting."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tools.benchmarks.settings import Settings


def keras_hub_training_step(settings: Settings) -> Callable[[], Any]:
    """KerasHub's BERT with its masked-LM head, Keras' AdamW and compiled graph (no XLA on CPU)."""
    import keras
    import keras_hub

    encoder = _keras_hub_encoder(settings)
    positions = keras.Input((None,), dtype="int32", name="masked_lm_positions")
    head = keras_hub.layers.MaskedLMHead(
        vocabulary_size=settings.vocab_size,
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
    features = settings.features()
    inputs = {
        **_keras_hub_inputs(features),
        "masked_lm_positions": features["masked_lm_positions"],
    }
    return lambda: model.train_on_batch(inputs, features["masked_lm_ids"])


def keras_hub_inference(settings: Settings) -> Callable[[], Any]:
    """KerasHub's encoder on one batch."""
    import tensorflow as tf

    encoder = _keras_hub_encoder(settings)
    inputs = {
        name: tf.constant(array) for name, array in _keras_hub_inputs(settings.features()).items()
    }
    compute = tf.function(encoder)  # outside of training
    return lambda: np.asarray(compute(inputs)["pooled_output"])


def torch_training_step(settings: Settings, compiled: bool = False) -> Callable[[], Any]:
    """Hugging Face's BERT under bfloat16 autocast, fused AdamW, masked positions only.

    Args:
        settings: the workload.
        compiled: let PyTorch's Inductor compile encoder and head (needs a C++ compiler).
    """
    import torch

    model = _torch_model(settings, "BertForMaskedLM").train()
    encode, head = model.bert, model.cls
    if compiled:
        encode, head = torch.compile(encode), torch.compile(head)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, weight_decay=0.01, fused=True)
    features = {name: torch.tensor(array).long() for name, array in settings.features().items()}
    positions = features["masked_lm_positions"][..., None]

    def run() -> float:
        with _autocast(settings):
            sequence = encode(
                input_ids=features["input_ids"],
                attention_mask=features["input_mask"],
                token_type_ids=features["segment_ids"],
            ).last_hidden_state
            masked = torch.gather(sequence, 1, positions.expand(-1, -1, sequence.shape[-1]))
            scores = head(masked).float()
            loss = torch.nn.functional.cross_entropy(
                scores.view(-1, settings.vocab_size), features["masked_lm_ids"].view(-1)
            )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return float(loss)

    return run


def torch_inference(settings: Settings, compiled: bool = False) -> Callable[[], Any]:
    """Hugging Face's encoder on one batch, its weights in bfloat16 (faster than autocast).

    Args:
        settings: the workload.
        compiled: let PyTorch's Inductor compile it with its weights frozen (needs a C++ compiler).
    """
    import torch

    model = _torch_model(settings, "BertModel").eval()
    if settings.precision == "bfloat16":
        model = model.to(torch.bfloat16)
    if compiled:
        import torch._inductor.config as inductor

        inductor.freezing = True
        model = torch.compile(model)
    features = {name: torch.tensor(array).long() for name, array in settings.features().items()}

    def run() -> Any:
        with torch.no_grad():
            return model(
                input_ids=features["input_ids"],
                attention_mask=features["input_mask"],
                token_type_ids=features["segment_ids"],
            ).pooler_output.float()

    return run


def _keras_hub_encoder(settings: Settings) -> Any:
    import keras
    import keras_hub

    if settings.precision == "bfloat16":
        keras.config.set_dtype_policy("mixed_bfloat16")
    sizes = settings.sizes()
    return keras_hub.models.BertBackbone(
        settings.vocab_size,
        sizes["blocks"],
        sizes["heads"],
        sizes["hidden"],
        sizes["intermediate"],
        dropout=0.1,
        max_sequence_length=512,
    )


def _keras_hub_inputs(features: dict[str, Any]) -> dict[str, Any]:
    return {
        "token_ids": features["input_ids"],
        "padding_mask": features["input_mask"],
        "segment_ids": features["segment_ids"],
    }


def _torch_model(settings: Settings, name: str) -> Any:
    import transformers

    sizes = settings.sizes()
    config = transformers.BertConfig(
        vocab_size=settings.vocab_size,
        num_hidden_layers=sizes["blocks"],
        num_attention_heads=sizes["heads"],
        hidden_size=sizes["hidden"],
        intermediate_size=sizes["intermediate"],
        attn_implementation="sdpa",
    )
    return getattr(transformers, name)(config)


def _autocast(settings: Settings) -> Any:
    import torch

    return torch.autocast("cpu", torch.bfloat16, enabled=settings.precision == "bfloat16")
