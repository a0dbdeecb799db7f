"""Which pooling a configuration says."""

import pytest

from keras_bert_impl.models.head_settings import HEAD_POOLINGS, pooling_of, with_pooling
from tests.support.tiny_bert import TINY


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
