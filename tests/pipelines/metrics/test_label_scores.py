import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from pipelines.metrics.label_scores import ClassScores, LabelSetScores

PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)
SETS = st.lists(st.lists(st.integers(0, 1), min_size=6, max_size=6), min_size=1, max_size=20)


@given(PAIRS)
def test_figures_from_counts_are_those_of_the_rows(pairs):
    scores = ClassScores(4)
    for pair in pairs:
        scores.add(*pair)
    labels, predictions = zip(*pairs, strict=True)
    macro, micro = (
        metrics.f1_score(labels, predictions, average=mean, zero_division=0)
        for mean in ("macro", "micro")
    )
    assert scores.figures() == pytest.approx(
        {
            "accuracy": metrics.accuracy_score(labels, predictions),
            "macro_f1": macro,
            "micro_f1": micro,
            "matthews_correlation": metrics.matthews_corrcoef(labels, predictions),
        }
    )
    rows = metrics.precision_recall_fscore_support(
        labels, predictions, labels=range(4), zero_division=0
    )
    figures = scores.by_class()
    np.testing.assert_allclose([figures.precision, figures.recall, figures.f1], rows[:3])
    assert figures.examples.tolist() == rows[3].tolist()
    matrix = metrics.confusion_matrix(labels, predictions, labels=range(4))
    assert scores.matrix().tolist() == matrix.tolist()
    assert figures.predicted.tolist() == matrix.sum(axis=0).tolist()


@given(SETS)
def test_figures_of_label_sets_are_scikit_learns(rows):
    labels, predictions = np.array(rows)[:, :3], np.array(rows)[:, 3:]
    scores = LabelSetScores(3)
    for pair in zip(labels, predictions, strict=True):
        scores.add(*pair)
    macro, micro = (
        metrics.f1_score(labels, predictions, average=mean, zero_division=0)
        for mean in ("macro", "micro")
    )
    assert scores.figures() == pytest.approx(
        {
            "accuracy": metrics.accuracy_score(labels, predictions),
            "macro_f1": macro,
            "micro_f1": micro,
        }
    )
    expected = metrics.precision_recall_fscore_support(labels, predictions, zero_division=0)
    figures = scores.by_class()
    np.testing.assert_allclose([figures.precision, figures.recall, figures.f1], expected[:3])


@pytest.mark.parametrize("scores", [ClassScores(2), LabelSetScores(2)])
def test_no_examples_have_no_score(scores):
    with pytest.raises(ValueError, match="no examples"):
        scores.figures()
