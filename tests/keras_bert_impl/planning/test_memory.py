"""The memory estimate beside peaks measured with tools/benchmarks/memory.py on a 2-core machine."""

import dataclasses

import pytest

from keras_bert_impl.config import named_config
from keras_bert_impl.planning.memory import ESTIMATE_WITHIN, training_memory
from keras_bert_impl.training.config import TrainingConfig

# size, batch, length, measured peak in GB; float32, a checkpoint after each step
MEASURED = [
    ("tiny", 64, 128, 1.94),
    ("mini", 32, 128, 2.04),
    ("mini", 8, 512, 2.01),
    ("small", 16, 128, 2.25),
    ("medium", 16, 128, 2.74),
]
TRAINING = TrainingConfig(learning_rate=1e-4, num_train_steps=4, num_warmup_steps=1, batch_size=1)


def estimate(size, batch, length, **changes):
    training = dataclasses.replace(TRAINING, batch_size=batch, **changes)
    return training_memory(named_config(size, 30522), training, length, 20, on_cpu=True)


@pytest.mark.parametrize(("size", "batch", "length", "measured"), MEASURED)
def test_the_estimate_is_near_what_was_measured(size, batch, length, measured):
    total = sum(estimate(size, batch, length).values()) / 1e9
    assert total == pytest.approx(measured, rel=ESTIMATE_WITHIN)


def test_recomputation_micro_batches_and_bfloat16_save_activations():
    plain = estimate("base", 32, 128)["activations"]
    assert estimate("base", 32, 128, recompute=True)["activations"] < plain / 5
    assert estimate("base", 32, 128, accumulation_steps=4)["activations"] == plain / 4
    assert estimate("base", 32, 128, precision="bfloat16")["activations"] < plain
