import math
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf

from pipelines.inputs.pretraining import PretrainingEvaluation
from pipelines.metrics.guessing import (
    AnswerCounts,
    count_answers,
    count_masked_tokens,
    pretraining_guesses,
)
from pipelines.records.check import Expected
from tests.support.pretraining_run import GOLDEN


def test_enough_tokens_are_counted_however_few_a_batch_has():
    batch = {"masked_lm_ids": np.array([[5]]), "masked_lm_weights": np.ones([1, 1])}
    assert count_masked_tokens([batch] * 90, 6, enough=80).tolist() == [0] * 5 + [80]


def test_the_loss_of_the_true_distribution_is_its_entropy():
    counts = np.array([3_000_000, 1_000_000])
    guesses = pretraining_guesses(counts, AnswerCounts(counts, np.array([1, 1])))
    entropy = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    assert guesses["masked_lm_loss"].value == pytest.approx(entropy, rel=1e-5)
    assert guesses["masked_lm_accuracy"].value == 0.75


VOCABULARY = 1000


def records(count):
    """The masked tokens and the labels of the first examples, read by TensorFlow alone."""
    tokens, labels = Counter(), Counter()
    for record in tf.data.TFRecordDataset(str(GOLDEN / "train.tfrecord")).take(count):
        features = tf.train.Example.FromString(record.numpy()).features.feature
        weights = features["masked_lm_weights"].float_list.value
        ids = features["masked_lm_ids"].int64_list.value
        tokens.update(i for i, weight in zip(ids, weights, strict=True) if weight > 0)
        labels.update(features["next_sentence_labels"].int64_list.value)
    return tokens, labels


@pytest.mark.parametrize(("max_batches", "examples"), [(None, 10**9), (2, 14)])
def test_answers_are_counted_in_the_examples_that_are_evaluated(max_batches, examples):
    shards = [str(GOLDEN / "train.tfrecord")]
    held_out = PretrainingEvaluation(shards, 7, Expected(64, 10), max_batches=max_batches)
    assert max_batches or held_out.num_examples % 7  # the last batch is filled up
    counts = count_answers(held_out.batches(), VOCABULARY)
    tokens, labels = records(examples)
    assert {n: int(c) for n, c in enumerate(counts.tokens) if c} == tokens
    assert counts.labels.tolist() == [labels[0], labels[1]]
    guesses = pretraining_guesses(counts.tokens, counts)
    best = max(tokens.values()) / tokens.total()
    assert guesses["masked_lm_accuracy"].value == pytest.approx(best)
    larger = max(labels.values()) / labels.total()
    assert guesses["next_sentence_accuracy"].value == pytest.approx(larger)
    assert guesses["next_sentence_loss"].value == pytest.approx(
        -sum(n / labels.total() * math.log(n / labels.total()) for n in labels.values())
    )


def test_the_guessed_token_is_the_one_that_training_masks_most():
    held_out = AnswerCounts(np.array([1, 3, 6]), np.array([1, 1]))
    guesses = pretraining_guesses(np.array([10, 50, 40]), held_out)
    assert guesses["masked_lm_accuracy"].value == pytest.approx(3 / 10)
    shares = np.array([11, 51, 41]) / 103  # one is added to each
    expected = -(np.array([0.1, 0.3, 0.6]) * np.log(shares)).sum()
    assert guesses["masked_lm_loss"].value == pytest.approx(expected)


def test_examples_of_one_label_need_no_guessing():
    guesses = pretraining_guesses(np.ones(3), AnswerCounts(np.ones(3, np.int64), np.array([4, 0])))
    assert guesses["next_sentence_accuracy"].value == 1.0
    assert guesses["next_sentence_loss"].value == 0.0
