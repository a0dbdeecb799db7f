"""Trains a tiny BERT with its batches cut in several ways, and prints what comes out as JSON.

Run as a process of its own, because devices can only be split before TensorFlow starts:
`python -m tests.support.cut_batches one_device|mirrored|multi_worker_mirrored WAYS...`, each way
being `batch_size,accumulation_steps,use_xla,dropout`, and perhaps `,toy`, for a layer of dropout
before one of weights and the same rows on every replica, or `,vectors` and how many texts are
computed at once.
"""

import dataclasses
import json
import sys
from functools import partial

import keras
import numpy as np

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers.dropout import Dropout
from keras_bert_impl.losses import MultipleNegativesRankingLoss
from keras_bert_impl.models.embedder import BertEmbedder
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.objectives import PretrainingObjective
from keras_bert_impl.training.state import TrainingState, local_copy
from keras_bert_impl.training.step import make_step
from keras_bert_impl.training.strategy import make_devices
from keras_bert_impl.training.vector_step import VectorObjective
from pipelines.fine_tuning.row_set import RowSet
from pipelines.records.rows import Rows
from pipelines.tasks.vectors.batches import VectorBatches
from tests.support.toy_training import ToyObjective, toy_features

LENGTH, PREDICTIONS, TOKENS, STEPS, RATE = 16, 4, 50, 4, 1e-3


def batch(rows, seed):
    """Examples of unequal lengths and numbers of masked positions."""
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


def toy_batch(rows, replicas, seed):
    """The same rows for each replica."""
    features = toy_features(rows // replicas, seed).items()
    return {name: np.concatenate([array] * replicas) for name, array in features}


def toy_model(config):
    """Weights behind a layer of dropout."""
    inputs = keras.Input([8], name="x")
    dropped = Dropout(config.hidden_dropout_prob, stream=1)(inputs)
    return keras.Model({"x": inputs}, {"logits": keras.layers.Dense(3)(dropped)})


def vector_batches(rows, texts_at_once, replicas):
    """Batches of queries and longer documents, every one a negative of the others' queries."""
    draws = np.random.default_rng(3)
    lengths = np.concatenate([draws.integers(4, 8, 2 * rows), draws.integers(6, LENGTH, 2 * rows)])
    ids = draws.integers(1, TOKENS, lengths.sum()).astype("int32")
    tokens = {"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": np.zeros_like(ids)}
    texts = RowSet([Rows(np.arange(len(lengths)), lengths, tokens)])
    pairs = np.arange(4 * rows, dtype="int32").reshape(2, -1).T
    return VectorBatches(
        *(texts, pairs, None, None),
        batch_size=rows,
        seed=5,
        texts_at_once=texts_at_once,
        replicas=replicas,
    )


def config_of(**changes):
    return TrainingConfig(
        learning_rate=RATE,
        num_train_steps=STEPS,
        num_warmup_steps=0,
        ema_decay=0.9,
        **{"kernels": "plain", **changes},
    )


def training_step(
    devices, config, dropout=0.0, model_of=BertPretrainer, objective=None, open_features=frozenset()
):
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
        model = model_of(model_config)
    state = TrainingState(model, config, devices)
    return state, make_step(state, objective or PretrainingObjective(), config, open_features)


def train(devices, strategy, way):
    """The figures of the steps; all weights and their averages after them."""
    rows, accumulation_steps, use_xla, dropout, *more = way.split(",")
    devices = dataclasses.replace(devices, use_xla=use_xla == "xla")
    config = config_of(
        train_batch_size=int(rows),
        distribution_strategy=strategy,
        accumulation_steps=int(accumulation_steps),
    )
    if more[:1] == ["vectors"]:
        vectors = BertEmbedder, VectorObjective(MultipleNegativesRankingLoss(scale=5.0))
        batches = vector_batches(int(rows), int(more[1]), devices.replicas)
        which = (*vectors, batches.open_features)
        state, step = training_step(devices, config, float(dropout), *which)
        batch_of = batches.batch_at
    elif more == ["toy"]:
        state, step = training_step(devices, config, float(dropout), toy_model, ToyObjective())
        batch_of = partial(toy_batch, int(rows), devices.replicas)
    else:
        state, step = training_step(devices, config, float(dropout))
        batch_of = partial(batch, int(rows))
    figures = []
    for number in range(STEPS):
        given = batch_of(number)
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
