"""Trains a tiny model with each kind of head for some steps, and prints what came out as JSON.

Run as a process of its own, because devices can only be split before TensorFlow starts:
`python -m tests.support.head_steps one_device|mirrored`.
"""

import dataclasses
import json
import sys

import keras
import numpy as np

from keras_bert_impl.config import BertConfig
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.feature_tagger import BertFeatureTagger
from keras_bert_impl.models.head_settings import FrozenFeatures, with_frozen_features
from keras_bert_impl.models.multiple_choice import BertMultipleChoice
from keras_bert_impl.models.token_models import BertSpanLabeler
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.objectives import (
    ClassificationObjective,
    RegressionObjective,
    SpanObjective,
)
from keras_bert_impl.training.state import TrainingState
from keras_bert_impl.training.step import TrainingStep
from keras_bert_impl.training.strategy import make_devices
from pipelines.fine_tuning.row_batches import RowBatches
from pipelines.fine_tuning.row_set import RowSet
from pipelines.records.rows import Rows
from pipelines.tasks.tagging.objective import TagObjective

ROWS, LENGTH, CHOICES, TOKENS, STEPS, MAX_LENGTH = 12, 16, 3, 50, 2, 24
RATE = 5e-5
CONFIG = BertConfig(
    vocab_size=TOKENS,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=MAX_LENGTH,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    initializer_range=0.3,
)
FROZEN = with_frozen_features(CONFIG, FrozenFeatures("weighted_all", lstm_size=6))


HEADS = {
    "regression": (lambda: BertClassifier(CONFIG, 1, pooling="mean"), RegressionObjective()),
    "span": (lambda: BertSpanLabeler(CONFIG), SpanObjective()),
    "choices": (lambda: BertMultipleChoice(CONFIG, CHOICES), ClassificationObjective()),
    "features": (lambda: BertFeatureTagger(FROZEN, 4), TagObjective()),
}


def batch_for(head, seed):
    """Examples of unequal lengths, with the labels of the head; some count less than others."""
    draws = np.random.default_rng(seed)
    shape = [ROWS, CHOICES, LENGTH] if head == "choices" else [ROWS, LENGTH]
    lengths = draws.integers(5, LENGTH + 1, [*shape[:-1], 1])
    labels = {
        "regression": {"label_ids": draws.normal(size=ROWS).astype("float32")},
        "span": {
            name: draws.integers(0, 5, ROWS).astype("int32")
            for name in ("start_positions", "end_positions")
        },
        "features": {"tag_ids": draws.integers(0, 5, shape).astype("int32")},
    }
    return {
        "input_ids": draws.integers(1, TOKENS, shape).astype("int32"),
        "input_mask": (np.arange(LENGTH) < lengths).astype("int32"),
        "segment_ids": (np.arange(LENGTH) >= lengths // 2).astype("int32"),
        "example_weights": draws.choice([0.5, 1.0], ROWS).astype("float32"),
        **labels.get(head, {"label_ids": draws.integers(0, 3, ROWS).astype("int32")}),
    }


def training_step(make_model, objective, devices, config):
    keras.utils.set_random_seed(1)
    with devices.strategy.scope():
        model = make_model()
    return model, TrainingStep(TrainingState(model, config, devices), objective, config)


def train(head, devices, config):
    """The losses of the steps and all weights after them."""
    model, step = training_step(*HEADS[head], devices, config)
    losses = []
    for number in range(STEPS):
        (row,) = step.run(*step.prepare([batch_for(head, number)], number, [RATE]))
        losses.append(step.metrics(row)["loss"])
    weights = np.concatenate([np.ravel(weight) for weight in model.weights])
    return {"losses": losses, "weights": weights.astype("float64").tolist()}


class Tracing(ClassificationObjective):
    """Notes the positions of each batch that the step is traced (and compiled) for."""

    def __init__(self):
        super().__init__()
        self.lengths = []

    def loss(self, outputs, batch, normalizers):
        self.lengths.append(batch["input_ids"].shape[-1])
        return super().loss(outputs, batch, normalizers)


def traced_lengths(devices, config, fixed):
    """Steps over batches of like lengths: what they were traced for, and the lengths they had."""
    lengths = np.random.default_rng(1).choice([5, MAX_LENGTH], 40 * ROWS)
    ids = np.ones(int(lengths.sum()), np.int32)
    tokens = {"input_ids": ids, "input_mask": ids, "segment_ids": ids * 0}
    block = Rows(np.arange(len(lengths)), lengths, tokens, {"label_ids": lengths % 3})
    objective, seen = Tracing(), []
    _, step = training_step(lambda: BertClassifier(CONFIG, 3), objective, devices, config)
    length = MAX_LENGTH if fixed else None
    batches = RowBatches(RowSet([block]), ROWS, 1, fixed_length=length, by_length=True)
    for number in range(40):
        batch = batches.batch_at(number)
        seen.append(batch["input_ids"].shape[1])
        step.run(*step.prepare([batch], number, [RATE]))
    return {"traced": objective.lengths, "seen": sorted(set(seen))}


def main(strategy):
    config = TrainingConfig(
        learning_rate=RATE,
        num_train_steps=STEPS,
        num_warmup_steps=0,
        train_batch_size=ROWS,
        distribution_strategy=strategy,
        num_logical_devices=2 if strategy == "mirrored" else 1,
        kernels="plain",
    )
    devices = make_devices(config)
    results = {head: train(head, devices, config) for head in HEADS}
    by_length = devices
    if strategy == "one_device":
        by_length = dataclasses.replace(devices, use_xla=True)
        results |= {f"{head} xla": train(head, by_length, config) for head in HEADS}
        results["fixed length"] = traced_lengths(devices, config, fixed=True)
    results["lengths"] = traced_lengths(by_length, config, fixed=False)
    sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1])
