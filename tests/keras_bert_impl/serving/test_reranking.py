"""Which activation stands behind a logit, and the order of scores."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.checkpoints.task_settings import with_task_settings, without_task
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.reranking import _ACTIVATIONS, PairScoring, activation_of, best_of

NUMBER = {"problem_type": "regression"}


def named(name):
    return {"sentence_transformers": {"activation_fn": name}}


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ({}, "Sigmoid"),
        (named("torch.nn.Identity"), "Identity"),
        (named("torch.nn.modules.activation.Tanh"), "Tanh"),
        (named(None) | {"sbert_ce_default_activation_function": "torch.nn.Identity"}, "Sigmoid"),
        (named("my_code.Sigmoid"), "my_code.Sigmoid"),
        (NUMBER, "Sigmoid"),  # as sentence-transformers does
    ],
)
def test_what_the_files_name_else_a_sigmoid(extra, expected):
    assert activation_of(BertConfig(vocab_size=9, extra=extra)) == expected


def test_a_number_that_was_learned_here_is_the_score_as_it_is():
    config = BertConfig(vocab_size=9, extra=NUMBER)
    assert activation_of(with_task_settings(config, {"task": "STS-B"})) == "Identity"


def test_a_new_task_has_no_activation_of_the_old_one():
    config = BertConfig(vocab_size=9, extra=named("torch.nn.Identity"))
    assert activation_of(without_task(config)) == "Sigmoid"


@pytest.mark.parametrize("value", [5, [], {"activation_fn": 5}])
def test_an_entry_of_another_type_is_told(value):
    values = BertConfig(vocab_size=9).to_hugging_face() | {"sentence_transformers": value}
    with pytest.raises(UserError, match="sentence_transformers"):
        BertConfig.from_hugging_face(values, "config.json")


def scoring(activation):
    return PairScoring(None, score=_ACTIVATIONS[activation], raw=float)


@given(st.lists(st.floats(-2, 2)), st.integers(1, 5))
def test_the_best_come_first_and_equal_ones_in_their_order(scores, top):
    order = best_of(scoring("Identity"), scores)
    keys = [(-scores[number], number) for number in order]
    assert keys == sorted(keys)
    assert best_of(scoring("Identity"), scores, top) == order[:top]


def test_scores_that_an_activation_makes_equal_are_in_the_order_of_the_raw_ones():
    assert best_of(scoring("Sigmoid"), [800.0, 50.0, 60.0, -900.0, -800.0]) == [0, 2, 1, 4, 3]


def test_a_small_probability_is_not_lost():
    assert _ACTIVATIONS["Sigmoid"](-45.0) == pytest.approx(2.8625185805e-20)
