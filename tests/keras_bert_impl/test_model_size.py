import dataclasses

import numpy as np
import pytest

from keras_bert_impl.config import BertConfig, named_config
from keras_bert_impl.planning import (
    count_parameters,
    encoder_flops,
    made_up_examples,
    parameters_by_part,
    training_flops,
)

SMALL = BertConfig(
    vocab_size=7, hidden_size=4, num_hidden_layers=3, num_attention_heads=2, intermediate_size=5
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


def product(rows, inner, columns):
    return 2 * rows * inner * columns


def test_every_product_of_the_encoder_counts():
    projections = 4 * product(6, 4, 4)  # query, key, value, output
    attention = 2 * 2 * product(6, 2, 6)  # two heads of width 2: scores, and what they weigh
    feed_forward = product(6, 4, 5) + product(6, 5, 4)
    assert encoder_flops(SMALL, 6) == 3 * (projections + attention + feed_forward)


def test_a_training_step_costs_three_forward_passes_with_the_heads():
    masked_lm = product(2, 4, 4) + product(2, 4, 7)
    next_sentence = product(1, 4, 4) + product(1, 4, 2)  # the pooler and its head
    expected = 3 * (encoder_flops(SMALL, 6) + masked_lm + next_sentence)
    assert training_flops(SMALL, 6, 2) == expected


def test_made_up_examples_are_what_a_model_takes():
    examples = made_up_examples(rows=3, length=8, predictions=2, vocab_size=20)
    assert {name: array.shape for name, array in examples.items()} == {
        **dict.fromkeys(("input_ids", "input_mask", "segment_ids"), (3, 8)),
        **dict.fromkeys(("masked_lm_positions", "masked_lm_ids", "masked_lm_weights"), (3, 2)),
        "next_sentence_labels": (3, 1),
    }
    for name in ("input_ids", "masked_lm_ids"):  # no special tokens
        assert examples[name].min() >= 5
        assert examples[name].max() < 20
    assert examples["masked_lm_positions"].max() < 8
    assert examples["input_mask"].all()


def test_the_same_seed_makes_the_same_examples():
    first, again, other = (made_up_examples(3, 8, 2, 20, seed)["input_ids"] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
