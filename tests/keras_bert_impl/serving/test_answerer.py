"""The contract of answerers, and what is the same for all of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.answerer import ask, batches_of, instances_of, main_answerer
from tests.support.toy_answerer import ToyAnswerer, ToyModel


def test_answers_come_in_the_order_of_the_instances():
    answerer = ToyAnswerer()
    answers = ask(answerer, instances_of(answerer, ["aaaa", "a" * 60, "aa", "aaa"]))
    assert [answer["score"] for answer in answers] == [4, 60, 2, 3]
    assert answerer.sizes == [1, 3]


def test_nothing_asked_is_nothing_answered():
    assert ask(ToyAnswerer(), []) == []


def test_an_instance_that_is_no_text_is_named():
    with pytest.raises(UserError, match="instance 2"):
        ask(ToyAnswerer(), [{"text": "a"}, {"txt": "b"}])


@given(st.lists(st.integers(1, 40)), st.integers(1, 100))
def test_every_row_is_in_one_batch_and_no_batch_of_several_rows_is_too_large(lengths, tokens):
    batches = list(batches_of(lengths, tokens))
    assert sorted(number for batch in batches for number in batch) == [*range(len(lengths))]
    for batch in batches:
        longest = max(lengths[number] for number in batch)
        assert len(batch) == 1 or len(batch) * longest <= tokens


def test_the_first_answerer_of_a_model_is_the_main_one():
    model = ToyModel()
    assert main_answerer(model) is main_answerer(model, "text")
    with pytest.raises(KeyError):
        main_answerer(model, "embed")
