from types import SimpleNamespace

import pytest

from keras_bert_impl.errors import UserError
from pipelines.answering.serving import ServeConfig, _fill_up, _warm_up
from tests.support.toy_answerer import ToyAnswerer, ToyModel


def folders(**options):
    return {name: how.model for name, how in ServeConfig(**options).models().items()}


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"model": ("runs/mrpc/",)}, {"mrpc": "runs/mrpc/"}),
        ({"model": ("runs/a=b/mrpc",)}, {"mrpc": "runs/a=b/mrpc"}),
        ({"model": ("x", "b=y"), "model_name": ("a",)}, {"a": "x", "b": "y"}),
    ],
)
def test_models_have_the_names_that_they_are_given_or_those_of_their_folders(options, found):
    assert folders(**options) == found


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"model": ("x",), "model_name": ("a", "b")}, "names 2 models"),
        ({"model": ("x",), "model_name": ("a/b",)}, "is no name for a path"),
        ({"model": ("a/x", "b/x")}, "two models are called 'x'"),
    ],
)
def test_what_cannot_be_served_is_one_sentence(options, sentence):
    with pytest.raises(UserError, match=sentence):
        ServeConfig(**options)


def test_each_question_is_asked_once_before_clients_come():
    model = ToyModel({"text": ToyAnswerer()})
    _warm_up(model)
    assert model.answerers["text"].sizes == [1]


def test_full_batches_are_computed_before_it_is_ready():
    toy = ToyAnswerer(tokens_at_once=512, batches_at_once=2)
    service = SimpleNamespace(stopping=False, is_warm=False)
    _fill_up([ToyModel({"text": toy})], service)
    assert service.is_warm
    assert sum(toy.sizes) * 123 >= 2 * 512  # texts of 62 letters and 61 blanks
