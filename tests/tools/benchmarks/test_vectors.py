"""The benchmark of vectors: its texts, its figures, its turns and its table."""

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.embedder import Embedder
from tests.support.model_folders import write_encoder
from tools.benchmarks.vectors import (
    CONTENDERS,
    ContenderSetting,
    VectorsConfig,
    compare,
    read_texts,
)

TEXTS = ["the dog runs .", "a", "the cat sleeps , a list"]


@pytest.fixture
def config(tmp_path):
    lines = tmp_path / "lines.txt"
    lines.write_text("".join(f"text number {n} of many\n" for n in range(40)))
    sizes = {"num_mixed": 20, "num_equal": 3, "num_one": 4, "length": 16}
    return VectorsConfig(model="m", input_file=str(lines), rounds=2, **sizes)


def test_texts_are_spread_over_the_file_and_equal_ones_are_long(config):
    texts = read_texts(config)
    assert {name: len(some) for name, some in texts.items()} == {
        "mixed": 20,
        "equal": 3,
        "one": 4,
        "calibration": 20,
    }
    assert texts["mixed"][-1] == "text number 38 of many"
    assert all(len(text.split()) >= config.length for text in texts["equal"])


def test_an_unknown_contender_and_too_few_texts_are_one_sentence(config, tmp_path):
    with pytest.raises(
        UserError, match="`contenders`: torch is unknown; name ours_tensorflow_float32"
    ):
        compare(VectorsConfig(**{**vars(config), "contenders": ("torch",)}), tmp_path)
    with pytest.raises(UserError, match="has 40 texts, and 99 are asked for"):
        read_texts(VectorsConfig(**{**vars(config), "num_mixed": 99}))


def test_a_contender_gives_a_vector_a_text(tmp_path):
    folder = write_encoder(tmp_path / "model")
    setting = ContenderSetting(str(folder), threads=1, length=8, precision="float32")
    make, precision = CONTENDERS["ours_tensorflow_float32_alone"]
    assert precision == "float32"
    vectors = make(setting)(TEXTS)
    expected = Embedder.from_pretrained(folder, max_seq_length=8).embed(TEXTS)
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
