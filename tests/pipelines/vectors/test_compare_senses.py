import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.pictures import write_png
from pipelines.vectors import compare_senses
from pipelines.vectors.compare_senses import SensesConfig, compare_word_senses, draw_senses
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


COSINES = np.array([[1.0, 0.93, 0.91], [0.93, 1.0, 0.94], [0.91, 0.94, 1.0]])


@pytest.fixture
def drawn(tmp_path, monkeypatch):
    """Draws a picture and gives its figure."""

    def draw(labels, cosines=COSINES, title="'bank'"):
        figures = []
        monkeypatch.setattr(
            compare_senses, "write_png", lambda path, figure, dpi: figures.append(figure)
        )
        draw_senses(tmp_path / "x.png", labels, cosines, title)
        (figure,) = figures
        write_png(tmp_path / "x.png", figure)
        return figure

    return draw


@pytest.mark.parametrize(
    ("label", "count"),
    [("short", 2), ("a long use " * 9, 3), ("배를 타고 강을 건너는 사람들이 " * 4, 3), ("use", 16)],
    ids=["few", "long", "Hangul", "many"],
)
def test_no_label_is_cut_off(drawn, label, count):
    cosines = np.full((count, count), 0.5)
    figure = drawn([f"use {n}: {label}" for n in range(count)], cosines, title="of one word " * 9)
    inside = figure.get_tightbbox()
    assert inside.x0 >= -0.05  # inches: less than a stroke is wide
    assert inside.y0 >= -0.05
    assert inside.x1 <= figure.get_figwidth() + 0.05
    assert inside.y1 <= figure.get_figheight() + 0.05


def test_the_colours_go_from_the_lowest_to_the_highest_cosine_of_two_uses(drawn):
    (image,) = drawn(["one", "two", "three"]).axes[0].images
    assert image.get_clim() == (0.91, 0.94)
    assert np.ma.getmaskarray(image.get_array()).tolist() == np.eye(3, dtype=bool).tolist()


def test_every_two_uses_have_their_number_and_the_diagonal_has_none(drawn):
    texts = [text.get_text() for text in drawn(["one", "two", "three"]).axes[0].texts]
    assert texts == ["", "0.93", "0.91", "0.93", "", "0.94", "0.91", "0.94", ""]
