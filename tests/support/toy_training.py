"""A classifier so small that training it costs nothing, for tests of the trainer."""

import keras
import numpy as np

from keras_bert_impl.training.batches import PhasedBatches, one_phase
from keras_bert_impl.training.checkpoints import Checkpoints
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.metric_writers import MetricWriter
from keras_bert_impl.training.objectives import ClassificationObjective
from keras_bert_impl.training.run import Run
from keras_bert_impl.training.run_directory import RunDirectory
from keras_bert_impl.training.state import TrainingState
from keras_bert_impl.training.step import Chunk
from tests.support.array_batches import ArrayBatches


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
        "kernels": "plain",  # nothing is compiled
    }
    return TrainingConfig(**{**settings, **changes})


class Recorder(MetricWriter):
    """A writer of figures that keeps what it is given."""

    def __init__(self):
        self.lines = []

    def write(self, kind, step, figures):
        self.lines.append((kind, step, dict(figures)))


def toy_run(folder, step=0, metrics=(), recorder=None, logged=None, **changes):
    """A run as its hooks see it, at some step, without the loop around it."""
    config, directory = toy_config(**changes), RunDirectory.open(folder)
    state = TrainingState(toy_model(), config)
    state.step = step
    batches = ArrayBatches(toy_features(), config.train_batch_size, seed=1)
    log = (logged if logged is not None else []).append
    return Run(
        config=config,
        directory=directory,
        state=state,
        batches=PhasedBatches(one_phase(batches, config)),
        checkpoints=Checkpoints(
            directory.checkpoints, state.variables(), config.keep_checkpoint_max, log=log
        ),
        settings=config.mathematics(),
        writer=recorder or Recorder(),
        log=log,
        first_step=step,
        last_step=config.num_train_steps,
        metrics=dict(metrics),
    )


def toy_chunk(first_step=0, steps=1, examples=30, tokens=0):
    """The inputs of a compiled call, without the inputs."""
    rates = tuple(1e-3 * (first_step + number) for number in range(steps))
    return Chunk(first_step, None, None, rates, examples, tokens, 0.25)
