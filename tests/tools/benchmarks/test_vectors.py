"""The benchmark of vectors: its texts, its figures, its turns and its table."""

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.embedder import Embedder
from tests.support.model_folders import write_encoder
from tools.benchmarks import vectors
from tools.benchmarks.measuring import LeftOutError
from tools.benchmarks.vectors import (
    CONTENDERS,
    Setting,
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
        "short": 4,
        "calibration": 20,
    }
    assert texts["mixed"][-1] == "text number 38 of many"
    assert all(len(text.split()) >= config.length for text in texts["equal"])
    assert texts["short"] == ["text number 0", "text number 10 of", *texts["one"][2:]]


@pytest.fixture
def children(monkeypatch):
    """Contenders without processes: one cannot be opened, one ends in the second round."""
    asked = []

    class Told:
        def __init__(self, module, case, *flags):
            self.name, self.count = case["contender"], 0

        def ask(self, question):
            self.count += 1
            asked.append((self.name, question["workload"]))
            if self.name == "sentence_transformers_onnx_float32" or (
                self.name == "sentence_transformers_torch_float32" and self.count > 7
            ):
                raise LeftOutError("No module named 'it'")
            return 2.0 if self.name.startswith("ours") else 1.0

        def end(self):
            asked.append((self.name, "end"))

    monkeypatch.setattr(vectors, "Child", Told)
    monkeypatch.setattr(vectors, "write_model", lambda *_: None)
    return asked


def test_contenders_take_turns_and_who_fails_is_left_out(config, children, tmp_path, capsys):
    names = (
        "ours_openvino_float32",
        "sentence_transformers_torch_float32",
        "sentence_transformers_onnx_float32",
    )
    chosen = VectorsConfig(**{**vars(config), "contenders": names})
    figures = compare(chosen, tmp_path)
    assert figures["ours_openvino_float32"] == {
        "mixed": [2.0, 2.0],
        "equal": [2.0, 2.0],
        "one": [2.0, 2.0],
        "short": [2.0, 2.0],
    }
    assert figures["sentence_transformers_torch_float32"]["mixed"] == [1.0]
    assert "sentence_transformers_onnx_float32" not in figures
    error = capsys.readouterr().err
    assert error.count("is left out: No module named 'it'") == 2
    timed = [name for name, workload in children if workload == "equal"]
    assert timed == [
        "ours_openvino_float32",
        "sentence_transformers_torch_float32",
        "ours_openvino_float32",
    ]
    assert sum(workload == "end" for _, workload in children) == 3


def test_an_unknown_contender_and_too_few_texts_are_one_sentence(config, tmp_path):
    with pytest.raises(
        UserError, match="`contenders`: torch is none; choose of ours_tensorflow_float32"
    ):
        compare(VectorsConfig(**{**vars(config), "contenders": ("torch",)}), tmp_path)
    with pytest.raises(UserError, match="has 40 texts, and 99 are asked for"):
        read_texts(VectorsConfig(**{**vars(config), "num_mixed": 99}))


def test_a_contender_gives_a_vector_a_text(tmp_path):
    folder = write_encoder(tmp_path / "model")
    setting = Setting(str(folder), threads=1, length=8, precision="float32")
    make, precision = CONTENDERS["ours_tensorflow_float32_alone"]
    assert precision == "float32"
    vectors = make(setting)(TEXTS)
    expected = Embedder.from_pretrained(folder, max_seq_length=8).embed(TEXTS)
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
