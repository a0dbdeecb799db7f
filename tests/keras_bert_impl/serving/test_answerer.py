"""The contract of answerers, and what is the same for all of them."""

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.answerer import ask, instances_of
from tests.support.toy_answerer import ToyAnswerer


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
