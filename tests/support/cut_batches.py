"""Trains a tiny BERT with its batches cut in several ways, and prints what comes out as JSON.

Run as a process of its own, because devices can only be split before TensorFlow starts:
`python -m tests.support.cut_batches one_device|mirrored|multi_worker_mirrored WAYS...`, each way
being `batch_size,accumulation_steps,use_xla,dropout,precision`, and perhaps `,twice`.
"""

import json
import sys

import keras
import numpy as np

from keras_bert_impl.config import BertConfig
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.training.config import TrainingConfig, dtype_policy
from keras_bert_impl.training.objectives import PretrainingObjective
from keras_bert_impl.training.state import TrainingState
from keras_bert_impl.training.step import TrainingStep
from keras_bert_impl.training.strategy import make_devices

LENGTH, PREDICTIONS, TOKENS, STEPS = 16, 4, 50, 4


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


def train(devices, rows, accumulation_steps, use_xla, dropout, precision, twice, strategy):
    config = TrainingConfig(
        learning_rate=1e-3,
        num_train_steps=STEPS,
        num_warmup_steps=0,
        train_batch_size=rows,
        distribution_strategy=strategy,
        accumulation_steps=accumulation_steps,
        precision=precision,
    )
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
        model = BertPretrainer(model_config, dtype=dtype_policy(precision))
    state = TrainingState(model, config, devices)
    objective = PretrainingObjective()
    step = TrainingStep(state, objective, config)
    losses = []
    for number in range(STEPS):
        (row,) = step.run(*step.prepare([batch(rows, number, twice)], number, [1e-3]))
        losses.append(step.metrics(row))
    weights = np.concatenate([np.ravel(weight) for weight in model.weights])
    return {"metrics": losses, "weights": weights.astype("float64").tolist()}


def main(strategy, ways):
    import dataclasses

    count = 2 if strategy == "mirrored" else 1
    devices = make_devices(
        TrainingConfig(
            learning_rate=1.0,
            num_train_steps=1,
            num_warmup_steps=0,
            train_batch_size=1,
            distribution_strategy=strategy,
            num_logical_devices=count,
            kernels="plain",
        )
    )
    results = {}
    for way in ways:
        rows, accumulation_steps, use_xla, dropout, precision, *twice = way.split(",")
        results[way] = train(
            dataclasses.replace(devices, use_xla=use_xla == "xla"),
            int(rows),
            int(accumulation_steps),
            use_xla == "xla",
            float(dropout),
            precision,
            bool(twice),
            strategy,
        )
    if devices.is_chief:
        sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
