"""Runs our compiled programs in a process of its own: `python -m tests.support.xla_steps WAY...`.

Whoever starts it has XLA dump its programs, or counts on the process to live.
"""

import sys

import numpy as np
import tensorflow as tf

from keras_bert_impl.cpu_kernels.inference import inference_function
from keras_bert_impl.cpu_kernels.kernel_choice import choose_kernels
from keras_bert_impl.cpu_kernels.training import TrainingKernels
from keras_bert_impl.cpu_kernels.xla_programs import compiled
from keras_bert_impl.layers import kernels
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.training.config import TrainingConfig
from keras_bert_impl.training.objectives import PretrainingObjective
from keras_bert_impl.training.state import TrainingState
from keras_bert_impl.training.step import TrainingStep
from keras_bert_impl.training.strategy import make_devices
from tests.support.tiny_bert import TINY, features

# Large enough that compiled kernels are split, and that XLA would hand their reductions to YNNPACK.
CONFIG = TINY.replace(max_position_embeddings=128, hidden_dropout_prob=0.1, num_hidden_layers=1)
BATCH = features(16, 128, config=CONFIG)
INPUTS = {name: BATCH[name] for name in ("input_ids", "input_mask", "segment_ids")}


def train():
    config = TrainingConfig(
        learning_rate=1e-4, num_train_steps=2, num_warmup_steps=1, train_batch_size=16
    )
    devices = make_devices(config)
    with devices.strategy.scope():
        model = BertPretrainer(CONFIG, dtype="mixed_bfloat16")
    step = TrainingStep(TrainingState(model, config, devices), PretrainingObjective(), config)
    (row,) = step.run(*step.prepare([BATCH], 0, [1e-4]))
    assert np.isfinite(step.metrics(row)["loss"])


def infer():
    inference_function(BertClassifier(CONFIG, num_labels=2))(INPUTS)


def one_program():
    compiled(lambda rows: tf.reduce_sum(rows, 0))(tf.ones([512, 512]))


def use_xla_before():
    tf.function(lambda rows: tf.reduce_sum(rows, 0), jit_compile=True)(tf.ones([512, 512]))


def all_late():
    """Everything that is compiled elsewhere, in a process that has used XLA before."""
    assert choose_kernels("fast") is kernels.PLAIN
    train()
    infer()
    with kernels.use(TrainingKernels()):
        fine_tune_without_choice()


def fine_tune_without_choice():
    model = BertClassifier(CONFIG, num_labels=2)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.function(model)(INPUTS, training=True)["logits"])
    assert tape.gradient(loss, model.trainable_variables[-1].value) is not None


if __name__ == "__main__":
    for way in sys.argv[1:]:
        globals()[way]()
