"""The words that clients ask, counted."""

import logging

import pytest

from keras_bert_impl.serving.answerer import Prepared, ask
from keras_bert_impl.tokenization.packing import text_ids
from keras_bert_impl.tokenization.plain_tokenizer import PlainTokenizer
from keras_bert_impl.tokenization.text_settings import TextSettings
from pipelines.answering.serving import CountingAnswerer
from tests.support.model_folders import WORD_VOCABULARY
from tests.support.toy_answerer import ToyAnswerer

SETTINGS = TextSettings(WORD_VOCABULARY)


class OfWords(ToyAnswerer):
    """The toy, with rows of the tests' vocabulary."""

    def prepare(self, instances):
        block = PlainTokenizer(SETTINGS).encode_lines([one["text"] for one in instances])
        ids = text_ids(block, WORD_VOCABULARY, 512)
        return Prepared([{"input_ids": row, "input_mask": row * 0 + 1} for row in ids])


def told_of(caplog, *requests):
    answerer = CountingAnswerer(OfWords(tokens_at_once=4096), SETTINGS, "toy")
    with caplog.at_level(logging.WARNING):
        for texts in requests:
            ask(answerer, [{"text": text} for text in texts])
    return [record.getMessage() for record in caplog.records]


def test_words_of_another_language_are_told_once_whatever_is_asked(caplog):
    said = told_of(caplog, *[["개가 짖는다 dog"] * 100] * 3)
    assert len(said) == 1
    assert said[0].startswith("toy: 66.7 % of the words asked so far become [UNK]")


@pytest.mark.parametrize("texts", [["the dog runs"] * 300, ["개가 짖는다"] * 20])
def test_known_words_and_a_few_unknown_ones_are_no_matter(caplog, texts):
    assert told_of(caplog, texts) == []
