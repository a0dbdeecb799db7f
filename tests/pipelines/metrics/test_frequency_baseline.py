import numpy as np
import pytest

from pipelines.metrics.frequency_baseline import count_masked_tokens, frequency_baseline


def test_equal_shares_cost_the_logarithm_of_the_vocabulary():
    uniform = np.full(50, 10)
    assert frequency_baseline(uniform, uniform).loss == pytest.approx(np.log(50))


def test_the_loss_of_the_true_distribution_is_its_entropy():
    counts = np.array([3_000_000, 1_000_000])
    entropy = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    baseline = frequency_baseline(counts, counts)
    assert baseline.loss == pytest.approx(entropy, rel=1e-5)
    assert baseline.accuracy == 0.75


def test_a_token_never_seen_in_training_has_a_finite_loss():
    assert np.isfinite(frequency_baseline(np.array([5, 0]), np.array([0, 5])).loss)


def test_padding_predictions_are_not_counted():
    batches = [
        {"masked_lm_ids": np.array([[1, 0]]), "masked_lm_weights": np.array([[1.0, 0.0]])},
        {"masked_lm_ids": np.array([[1, 2]]), "masked_lm_weights": np.array([[1.0, 1.0]])},
    ]
    assert count_masked_tokens(batches, 3).tolist() == [0, 2, 1]
