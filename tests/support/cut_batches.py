"""Trains a tiny BERT with its batches cut in several ways, and prints what comes out as JSON.

Run as a process of its own, because devices can only be split before TensorFlow starts:
`python -m tests.support.cut_batches one_device|mirrored|multi_worker_mirrored WAYS...`, each way
being `batch_size,accumulation_steps,use_xla,dropout`, and perhaps `,twice`.
"""

import dataclasses
import json
import sys

import keras
import numpy as np

from keras_bert_impl.config import BertConfig
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.objectives import PretrainingObjective
from keras_bert_impl.training.state import TrainingState, local_copy
from keras_bert_impl.training.step import TrainingStep
from keras_bert_impl.training.strategy import make_devices

LENGTH, PREDICTIONS, TOKENS, STEPS, RATE = 16, 4, 50, 4, 1e-3


def batch(rows, seed, twice=False):
    """Examples of unequal lengths and numbers of masked positions; or half of them twice."""
    if twice:
        return {name: np.tile(a, [2, 1]) for name, a in batch(rows // 2, seed).items()}
    draws = np.random.default_rng(seed)
    lengths = draws.integers(5, LENGTH + 1, [rows, 1])
    masked = draws.integers(1, PREDICTIONS + 1, [rows, 1])
    return {
        "input_ids": draws.integers(1, TOKENS, [rows, LENGTH]).astype("int32"),
        "input_mask": (np.arange(LENGTH) < lengths).astype("int32"),
        "segment_ids": (np.arange(LENGTH) >= lengths // 2).astype("int32"),
        "masked_lm_positions": draws.integers(0, 5, [rows, PREDICTIONS]).astype("int32"),
        "masked_lm_ids": draws.integers(1, TOKENS, [rows, PREDICTIONS]).astype("int32"),
        "masked_lm_weights": (np.arange(PREDICTIONS) < masked).astype("float32"),
        "next_sentence_labels": draws.integers(0, 2, [rows, 1]).astype("int32"),
    }


def config_of(**changes):
    return TrainingConfig(
        learning_rate=RATE,
        num_train_steps=STEPS,
        num_warmup_steps=0,
        ema_decay=0.9,
        **{"kernels": "plain", **changes},
    )


def training_step(devices, config, dropout=0.0):
    """A model's state and its step, with the same weights every time."""
    model_config = BertConfig(
        vocab_size=TOKENS,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=LENGTH,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        initializer_range=0.3,
    )
    keras.utils.set_random_seed(1)
    with devices.strategy.scope():
        model = BertPretrainer(model_config)
    state = TrainingState(model, config, devices)
    return state, TrainingStep(state, PretrainingObjective(), config)


def train(devices, strategy, way):
    """The figures of the steps; all weights and their averages after them."""
    rows, accumulation_steps, use_xla, dropout, *twice = way.split(",")
    devices = dataclasses.replace(devices, use_xla=use_xla == "xla")
    config = config_of(
        train_batch_size=int(rows),
        distribution_strategy=strategy,
        accumulation_steps=int(accumulation_steps),
    )
    state, step = training_step(devices, config, float(dropout))
    figures = []
    for number in range(STEPS):
        given = batch(int(rows), number, bool(twice))
        (row,) = step.run(*step.prepare([given], number, [RATE]))
        figures.append(step.metrics(row))
    variables = [*(weight.value for weight in state.model.weights), *state.averages]
    weights = np.concatenate([np.ravel(local_copy(one).numpy()) for one in variables])
    return {"metrics": figures, "weights": weights.astype("float64").tolist()}


def main(strategy, ways):
    count = 2 if strategy == "mirrored" else 1
    config = config_of(distribution_strategy=strategy, num_logical_devices=count)
    devices = make_devices(config)
    results = {way: train(devices, strategy, way) for way in ways}
    if devices.is_chief:
        sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
