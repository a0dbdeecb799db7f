"""What every model with a head does, whatever the head."""

import numpy as np
import pytest

from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.head_settings import HEAD_POOLINGS, pooling_of, with_pooling
from keras_bert_impl.models.multiple_choice import BertMultipleChoice
from keras_bert_impl.models.token_models import BertSpanLabeler, BertTokenClassifier
from tests.support.head_checks import check_against_numpy, check_outputs, check_saving
from tests.support.tiny_bert import TINY, features, scatter_weights


def batch_of_choices():
    batch = features()
    return {name: np.stack([batch[name]] * 2, axis=1) for name in list(batch)[:3]}


HEADS = {
    "classifier": (lambda: BertClassifier(TINY, 3), features, {"logits": (2, 3)}),
    "tagger": (lambda: BertTokenClassifier(TINY, 5), features, {"logits": (2, 8, 5)}),
    "span": (
        lambda: BertSpanLabeler(TINY),
        features,
        {"start_logits": (2, 8), "end_logits": (2, 8)},
    ),
    "choice": (lambda: BertMultipleChoice(TINY, 2), batch_of_choices, {"logits": (2, 2)}),
}


@pytest.mark.parametrize("head", HEADS)
def test_it_gives_float32_scores_and_survives_saving(head, tmp_path):
    make_model, make_batch, shapes = HEADS[head]
    check_outputs(make_model(), make_batch(), shapes)
    check_saving(make_model, make_batch(), tmp_path)


@pytest.mark.parametrize("head", ["classifier", "tagger", "span", "choice"])
def test_outputs_and_gradients_are_those_of_an_independent_model(head, tmp_path):
    make_model, make_batch, _ = HEADS[head]
    check_against_numpy(make_model(), head, make_batch(), tmp_path)


def test_equal_choices_score_equally_and_others_do_not():
    model, batch = scatter_weights(BertMultipleChoice(TINY, 2)), batch_of_choices()
    batch["input_ids"][1, 1, 1] += 1
    scores = np.array(model(batch)["logits"])
    assert scores[0, 0] == scores[0, 1]
    assert scores[1, 0] != scores[1, 1]


@pytest.mark.parametrize("pooling", HEAD_POOLINGS)
def test_a_configuration_keeps_its_pooling_in_both_forms_of_file(pooling):
    config = with_pooling(TINY, pooling)
    assert pooling_of(config) == pooling
    assert pooling_of(type(TINY).from_hugging_face(config.to_hugging_face())) == pooling
    assert pooling_of(type(TINY).from_google(config.to_google())) == pooling
    assert with_pooling(config, None) is config


def test_the_pooler_is_what_a_file_says_by_saying_nothing():
    config = with_pooling(with_pooling(TINY.replace(extra={"a": 1}), "mean"), "pooler")
    assert dict(config.extra) == {"a": 1}
