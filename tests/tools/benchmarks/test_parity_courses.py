import numpy as np
import pytest

from tests.support.adamw_formula import RATE, numpy_steps
from tools.benchmarks.parity_courses import Course, Peer, Work, compare, decisions, google_adamw


@pytest.mark.parametrize("decay", [0.0, 0.01])
def test_the_update_is_the_published_one(decay):
    draw = np.random.default_rng(5)
    weight, gradients = draw.normal(size=7), draw.normal(size=[4, 7])
    ours, moments = weight.copy(), (np.zeros(7), np.zeros(7))
    for gradient in gradients:
        google_adamw(ours, gradient, moments, RATE, decay)
    np.testing.assert_allclose(ours, numpy_steps(weight, gradients, decay), rtol=1e-12)


def test_logits_stand_in_the_order_of_the_rows():
    rows = [np.array([2, 0]), np.array([1])]
    work = Work([], [], [{}, {}], rows, Peer.of_texts(1))
    logits = [np.array([[2.0], [0.0]]), np.array([[1.0], [99.0]])]  # the last batch is filled up
    outputs = ({"logits": array} for array in logits)
    assert work.course([], outputs).logits.tolist() == [[0.0], [1.0], [2.0]]


def test_starts_and_ends_are_decided_among_the_tokens_of_a_row():
    batches = [{"input_mask": np.array([[1, 1], [1, 0]])}, {"input_mask": np.array([[1, 1, 1]])}]
    outputs = [
        {"start_logits": np.array([[1.0, 2.0], [3.0, 9.0]]), "end_logits": np.zeros([2, 2])},
        {"start_logits": np.array([[4.0, 5.0, 6.0]]), "end_logits": np.zeros([1, 3])},
    ]
    none = -np.inf
    logits, rows = decisions(batches[0], outputs[0], 2)
    assert logits.tolist() == [[1.0, 2.0], [3.0, none], [0.0, 0.0], [0.0, none]]
    assert rows.tolist() == [0, 1, 0, 1]
    work = Work([], [], batches, [np.array([1, 2]), np.array([0])], Peer.of_questions(2))
    found = work.course([], iter(outputs)).logits
    assert found[:2].tolist() == [[4.0, 5.0, 6.0], [0.0, 0.0, 0.0]]
    assert found[4].tolist() == [3.0, none, none]


def test_where_there_is_no_choice_nothing_differs():
    one = Course([1.0], np.array([[0.5, -np.inf], [0.5, 0.25]]))
    other = Course([1.0], np.array([[0.25, -np.inf], [0.5, 0.75]]))
    assert compare(one, other) == {
        "largest_loss_difference": 0.0,
        "largest_logit_difference": 0.5,
        "same_predictions": 1,
        "predictions": 2,
    }


def test_in_reverse_each_batch_has_the_same_rows():
    batch = {"input_ids": np.array([[1, 2], [3, 4]]), "label_ids": np.array([5, 6])}
    (reverse,) = Work([batch], [0.1], [], [], Peer.of_texts(2)).in_reverse().batches
    assert reverse["input_ids"].tolist() == [[3, 4], [1, 2]]
    assert reverse["label_ids"].tolist() == [6, 5]


def test_a_regression_has_numbers_in_place_of_predictions():
    ours, theirs = Course([1.0], np.array([[2.0]])), Course([1.0], np.array([[2.5]]))
    assert compare(ours, theirs) == {
        "largest_loss_difference": 0.0,
        "largest_logit_difference": 0.5,
    }
