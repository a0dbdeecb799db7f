import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from pipelines.vectors import compare_senses
from pipelines.vectors.compare_senses import SensesConfig, compare_word_senses
from pipelines.vectors.extract import LineFeatures

TOKENS = [
    "[CLS]",
    "a",
    "river",
    "bank",
    ";",
    "the",
    "##se",
    "bank",
    "##s",
    "and",
    "the",
    "bank",
    "[SEP]",
]
VECTORS = np.random.default_rng(1).normal(size=(3, len(TOKENS), 5)).astype(np.float32)


class _Extractor:
    def __init__(self, config):
        self.layers = list(config.layers)

    def tokens(self, text):
        return [text]

    def extract(self, lines):
        assert list(lines) == ["the text"]
        assert self.layers == [-3, -2, -1]
        yield LineFeatures(TOKENS, np.arange(len(TOKENS)), VECTORS)


@pytest.fixture(autouse=True)
def extractor(monkeypatch):
    monkeypatch.setattr(compare_senses, "FeatureExtractor", _Extractor)


def config(word: str) -> SensesConfig:
    return SensesConfig(model="model", text=["the text"], word=word, last_layers=3)


def test_the_cosines_are_those_of_the_layers_sums():
    table = compare_word_senses(config("bank"))
    sums = [VECTORS[:, position].astype(float).sum(axis=0) for position in (3, 7, 11)]
    for row, first in enumerate(sums):
        for column, second in enumerate(sums):
            cosine = first @ second / np.sqrt((first @ first) * (second @ second))
            assert table.cosines[row, column] == pytest.approx(cosine)


def test_each_use_is_shown_with_the_words_around_it():
    assert compare_word_senses(config("bank")).uses == [
        "a river [bank]; these banks and",
        "river bank; these [bank]s and the bank",
        "these banks and the [bank]",
    ]


@pytest.mark.parametrize(("word", "times"), [("river", 1), ("fox", 0)])
def test_a_word_that_is_not_used_twice_is_refused(word, times):
    with pytest.raises(UserError, match=f"uses the token '{word}' {times} times"):
        compare_word_senses(config(word))
