"""Estimates of a training run: parameters, memory, steps, operations, time."""

import dataclasses

import numpy as np

from keras_bert_impl.config import BertConfig
from keras_bert_impl.training.config import MOST_EXAMPLES, TrainingConfig

_FLOAT = 4
_HALF = 2  # bytes of a number in 16-bit precision
# What a process holds before there is a model: TensorFlow itself, compiled programs, threads.
_RUNTIME = {True: 0.92e9, False: 0.6e9}
# Numbers kept per position of a sequence and layer, counted in the code: in units of hidden size
# (the layer's input; products, queries, keys and values; context, twice; two products and their
# normalized sums), of intermediate size (before and after the activation) and of heads x length
# (scores, probabilities).
_KEPT_HIDDEN, _KEPT_WIDE, _KEPT_SCORES = 13, 2, 2
# Further layers whose numbers the backward pass holds; with recomputation all that is held. These,
# the runtime and the logits are fitted to measured runs (`RESULTS.md`).
_BACKWARD_LAYERS, _RECOMPUTED_LAYERS = 1.5, 1.8
_KEPT_LOGITS = {True: 3.2, False: 4.2}  # float32 copies, in float32 and in mixed precision
# With micro-batches memory of one is not yet given back when the next one takes its own.
_PARTS_HELD = 2


def training_memory(
    config: BertConfig,
    training: TrainingConfig,
    length: int,
    predictions: int,
    on_cpu: bool,
    replicas: int = 1,
) -> dict[str, float]:
    """Estimates one device's memory while it trains, in bytes by part."""
    numbers, averaged = count_parameters(config), training.ema_decay > 0
    # Rounded up: the largest part decides.
    rows = -(-training.train_batch_size // (replicas * training.accumulation_steps))
    several = training.accumulation_steps > 1
    activations = rows * activation_bytes(config, training, length)
    activations *= _PARTS_HELD if several else 1
    copies = _KEPT_LOGITS[training.precision == "float32"]
    logits = rows * predictions * config.vocab_size * _FLOAT * copies
    gradients = _FLOAT * numbers
    kept = gradients if several else 0  # the sum over micro-batches
    parts = {
        "runtime": _RUNTIME[on_cpu],
        "weights": _FLOAT * numbers,
        "adam_moments": 2 * _FLOAT * numbers,
        **({"average": _FLOAT * numbers} if averaged else {}),
        # Gradients take the place of activations as the backward pass goes on.
        "gradients": kept + max(0.0, gradients - activations - logits),
        "activations": activations,
        "logits": logits,
    }
    if on_cpu:
        # The weights, both moments and perhaps the average.
        parts["checkpoint_copy"] = (4 if averaged else 3) * _FLOAT * numbers
    return {name: float(size) for name, size in parts.items()}


def activation_bytes(config: BertConfig, training: TrainingConfig, length: int) -> float:
    """Estimates the most that the backward pass of one example holds, in bytes."""
    size = _FLOAT if training.precision == "float32" else _HALF
    layer = length * (
        _KEPT_HIDDEN * config.hidden_size
        + _KEPT_WIDE * config.intermediate_size
        + _KEPT_SCORES * config.num_attention_heads * length
    )
    if training.recompute:
        inputs = config.num_hidden_layers * length * config.hidden_size
        return size * (inputs + _RECOMPUTED_LAYERS * layer)
    return size * (config.num_hidden_layers + _BACKWARD_LAYERS) * layer


def largest_batch(
    config: BertConfig,
    training: TrainingConfig,
    length: int,
    predictions: int,
    on_cpu: bool,
    replicas: int,
    device_bytes: float,
) -> int:
    """Finds the largest batch whose estimate fits into a device's memory; 0 if none does."""
    parts = replicas * training.accumulation_steps
    most = MOST_EXAMPLES // parts

    def needed(rows: int) -> float:
        tried = dataclasses.replace(training, train_batch_size=rows * parts)
        return sum(training_memory(config, tried, length, predictions, on_cpu, replicas).values())

    # The estimate grows with the rows of a part: halve the range in which it passes the memory.
    fits, too_many = 0, 1
    while too_many <= most and needed(too_many) <= device_bytes:
        fits, too_many = too_many, 2 * too_many
    too_many = min(too_many, most + 1)
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        fits, too_many = (middle, too_many) if needed(middle) <= device_bytes else (fits, middle)
    return parts * fits


def parameters_by_part(config: BertConfig) -> dict[str, int]:
    """Counts a pre-training model's numbers by part."""
    hidden, wide, tokens = config.hidden_size, config.intermediate_size, config.vocab_size
    rows = tokens + config.type_vocab_size + config.max_position_embeddings
    attention = 4 * (hidden * hidden + hidden)
    feed_forward = hidden * wide + wide + wide * hidden + hidden
    return {
        "embeddings": rows * hidden + 2 * hidden,
        "layers": config.num_hidden_layers * (attention + feed_forward + 4 * hidden),
        "pooler": hidden * hidden + hidden,
        "masked_lm_head": hidden * hidden + 3 * hidden + tokens,
        "next_sentence_head": 2 * hidden + 2,
    }


def count_parameters(config: BertConfig) -> int:
    """Counts all of a pre-training model's numbers."""
    return sum(parameters_by_part(config).values())


def encoder_flops(config: BertConfig, length: int) -> int:
    """Counts the floating-point operations of the encoder's matrix products for one example.

    A product of [n, k] and [k, m] counts 2 n k m.
    """
    hidden, wide = config.hidden_size, config.intermediate_size
    layer = 2 * length * (4 * hidden * hidden + 2 * hidden * wide) + 4 * length * length * hidden
    return config.num_hidden_layers * layer


def training_flops(config: BertConfig, length: int, predictions: int) -> int:
    """Counts the matrix products' floating-point operations of one example's training step.

    The backward pass counts twice the forward pass; the heads of pre-training are included.
    """
    hidden = config.hidden_size
    heads = 2 * predictions * (hidden * hidden + hidden * config.vocab_size)
    heads += 2 * hidden * hidden + 4 * hidden
    return 3 * (encoder_flops(config, length) + heads)


def made_up_examples(
    rows: int, length: int, predictions: int, vocab_size: int, seed: int = 0
) -> dict[str, np.ndarray]:
    """Makes full-length examples.

    Returns:
        The features of pre-training, [rows, ...].
    """
    draws = np.random.default_rng(seed)
    tokens = draws.integers(5, vocab_size, [rows, length], np.int32)
    return {
        "input_ids": tokens,
        "input_mask": np.ones([rows, length], np.int32),
        "segment_ids": np.repeat(np.arange(length)[None] >= length // 2, rows, 0).astype(np.int32),
        "masked_lm_positions": draws.integers(1, length, [rows, predictions], np.int32),
        "masked_lm_ids": draws.integers(5, vocab_size, [rows, predictions], np.int32),
        "masked_lm_weights": np.ones([rows, predictions], np.float32),
        "next_sentence_labels": draws.integers(0, 2, [rows, 1], np.int32),
    }
