import dataclasses

import pytest

from keras_bert_impl.config import named_config
from keras_bert_impl.planning.model_size import count_parameters, parameters_by_part
from keras_bert_impl.planning.plan import largest_batch, plan_run
from keras_bert_impl.training.config import TrainingConfig

TRAINING = TrainingConfig(
    learning_rate=1e-4, num_train_steps=1000, num_warmup_steps=0, batch_size=32
)


def encoder_parameters(size):
    parts = parameters_by_part(named_config(size, 30522))
    return parts["embeddings"] + parts["layers"] + parts["pooler"]


@pytest.mark.parametrize(
    ("size", "published"),
    [
        ("tiny", 4_385_920),
        ("small", 28_763_648),
        ("medium", 41_373_184),
        ("base", 109_482_240),
        ("large", 335_141_888),
    ],
)
def test_parameters_are_the_published_ones(size, published):
    assert encoder_parameters(size) == published


def test_the_count_is_that_of_the_built_model():
    from keras_bert_impl.models.pretrainer import BertPretrainer

    config = dataclasses.replace(named_config("tiny", 100), max_position_embeddings=16)
    assert count_parameters(config) == BertPretrainer(config).count_params()


def test_the_largest_batch_fits_and_one_more_part_does_not():
    config, memory = named_config("base", 30522), 16e9
    rows = largest_batch(config, TRAINING, 128, 20, False, 1, memory)

    def needed(batch):
        training = dataclasses.replace(TRAINING, batch_size=batch)
        return sum(plan_run(config, training, 128, 20, False).memory.values())

    assert needed(rows) <= memory < needed(rows + 1)


def test_micro_batches_and_replicas_make_room():
    config = named_config("base", 30522)
    one = largest_batch(config, TRAINING, 128, 20, False, 1, 16e9)
    eight = dataclasses.replace(TRAINING, accumulation_steps=8)
    assert largest_batch(config, TRAINING, 128, 20, False, 2, 16e9) == 2 * one
    assert largest_batch(config, eight, 128, 20, False, 1, 16e9) > 3 * one


def test_a_model_that_does_not_fit_has_largest_batch_zero():
    assert largest_batch(named_config("large", 30522), TRAINING, 512, 76, False, 1, 4e9) == 0


def test_steps_tokens_and_hours_follow_from_the_flags():
    plan = plan_run(named_config("tiny", 30522), TRAINING, 128, 20, True, examples_per_second=10)
    assert (plan.examples, plan.tokens) == (32_000, 4_096_000)
    assert plan.hours == pytest.approx(32_000 / 10 / 3600)
