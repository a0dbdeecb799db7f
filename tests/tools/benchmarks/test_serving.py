"""The serving benchmark: its texts, its figures, its turns and its table."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.embedder import Embedder
from tests.support.model_folders import write_encoder
from tools.benchmarks import serving
from tools.benchmarks.measuring import LeftOutError
from tools.benchmarks.serving import (
    CONTENDERS,
    ServingConfig,
    Setting,
    _batches,
    _mean,
    compare,
    figure_of,
    read_texts,
)

TEXTS = ["the dog runs .", "a", "the cat sleeps , a list"]


@pytest.fixture
def config(tmp_path):
    lines = tmp_path / "lines.txt"
    lines.write_text("".join(f"text number {n} of many\n" for n in range(40)))
    sizes = {"num_mixed": 20, "num_equal": 3, "num_one": 4, "num_same_bytes": 30, "length": 16}
    return ServingConfig(model="m", input_file=str(lines), rounds=2, **sizes)


def test_texts_are_spread_over_the_file_and_equal_ones_are_long(config):
    texts = read_texts(config)
    assert {name: len(some) for name, some in texts.items()} == {
        "mixed": 20,
        "equal": 3,
        "one": 4,
        "short": 4,
        "same_bytes": 30,
        "calibration": 40,
    }
    assert texts["mixed"][-1] == "text number 38 of many"
    assert all(len(text.split()) >= config.length for text in texts["equal"])
    assert texts["short"] == ["text number 0", "text number 10 of", *texts["one"][2:]]


def test_a_share_counts_the_texts_whose_bytes_stay_the_same():
    def embed(texts):  # among others the first text's last digit changes
        return np.array([[1.0 + (len(texts) > 1 and n == 0)] for n in range(len(texts))], "f4")

    assert figure_of(embed, "same_bytes", ["a", "b", "c", "d"]) == 0.75


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
            if self.name == "keras_hub_float32" or (
                self.name == "ctranslate2_float32" and self.count > 8
            ):
                raise LeftOutError("No module named 'it'")
            return 2.0 if self.name.startswith("ours") else 1.0

        def end(self):
            asked.append((self.name, "end"))

    monkeypatch.setattr(serving, "Child", Told)
    monkeypatch.setattr(serving, "write_model", lambda *_: None)
    return asked


def test_contenders_take_turns_and_who_fails_is_left_out(config, children, tmp_path, capsys):
    names = ("ours_openvino_float32", "ctranslate2_float32", "keras_hub_float32")
    chosen = ServingConfig(**{**vars(config), "contenders": names})
    figures = compare(chosen, tmp_path)
    assert figures["ours_openvino_float32"] == {
        "mixed": [2.0, 2.0],
        "equal": [2.0, 2.0],
        "one": [2.0, 2.0],
        "short": [2.0, 2.0],
        "same_bytes": [2.0],
    }
    assert figures["ctranslate2_float32"]["mixed"] == [1.0]
    assert "keras_hub_float32" not in figures
    error = capsys.readouterr().err
    assert error.count("is left out: No module named 'it'") == 2
    timed = [name for name, workload in children if workload == "equal"]
    assert timed == ["ours_openvino_float32", "ctranslate2_float32", "ours_openvino_float32"]
    assert sum(workload == "end" for _, workload in children) == 3


def test_an_unknown_contender_and_too_few_texts_are_one_sentence(config, tmp_path):
    with pytest.raises(UserError, match="`contenders`: torch is none; choose of products_float32"):
        compare(ServingConfig(**{**vars(config), "contenders": ("torch",)}), tmp_path)
    with pytest.raises(UserError, match="has 40 texts; give one with 99"):
        read_texts(ServingConfig(**{**vars(config), "num_mixed": 99}))


def test_every_precision_has_ours_and_peers():
    for precision in ("float32", "bfloat16", "int8"):
        some = {name: one for name, one in CONTENDERS.items() if one.precision == precision}
        assert {one.is_peer for one in some.values()} == {True, False}
        assert all(name.removesuffix("_alone").endswith(precision) for name in some)


@given(st.lists(st.integers(1, 300), min_size=1, max_size=60))
def test_every_row_is_in_one_batch(lengths):
    batches = list(_batches([[0] * length for length in lengths]))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    assert all(len(some) * lengths[some[0]] <= 1024 for some in batches)


def test_a_mean_is_of_real_tokens():
    hidden = np.array([[[1.0], [3.0], [9.0]], [[5.0], [9.0], [9.0]]])
    assert _mean(hidden, [2, 1]).tolist() == [[2.0], [5.0]]


@pytest.mark.parametrize("name", ["ours_tensorflow_float32_alone", "products_float32"])
def test_a_contender_gives_a_vector_a_text(tmp_path, name):
    folder = write_encoder(tmp_path / "model")
    setting = Setting(str(folder), threads=1, length=8, precision="float32")
    vectors = CONTENDERS[name].make(setting)(TEXTS)
    assert vectors.shape == (3, 16)
    if name.startswith("ours"):
        expected = Embedder.from_pretrained(folder, max_seq_length=8).embed(TEXTS)
        np.testing.assert_allclose(vectors, expected, atol=1e-6)
