"""A classifier so small that training it costs nothing, for tests of the trainer."""

import keras
import numpy as np

from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.objectives import ClassificationObjective


class ToyObjective(ClassificationObjective):
    input_names = ("x",)


def toy_features(rows=100, seed=0):
    draws = np.random.default_rng(seed)
    return {
        "x": draws.normal(size=[rows, 8]).astype("float32"),
        "label_ids": draws.integers(0, 3, [rows]).astype("int32"),
    }


def toy_model(policy="float32", seed=1):
    keras.utils.set_random_seed(seed)
    inputs = keras.Input([8], name="x")
    hidden = keras.layers.Dense(16, activation="gelu", name="dense", dtype=policy)(inputs)
    logits = keras.layers.Dense(3, name="logits", dtype=policy)(hidden)
    return keras.Model({"x": inputs}, {"logits": logits})


def toy_config(**changes):
    settings = {
        "learning_rate": 1e-2,
        "num_train_steps": 20,
        "num_warmup_steps": 2,
        "train_batch_size": 30,
        "log_steps": 1,
        "save_checkpoints_steps": 7,
    }
    return TrainingConfig(**{**settings, **changes})
