import importlib.util
import json

import numpy as np
import pytest

from tests.support.adamw_formula import RATE, numpy_steps
from tests.support.glue_files import write_cola, write_sts
from tests.support.model_folders import write_encoder
from tools.benchmarks import transformers_parity
from tools.benchmarks.transformers_parity import Course, Work, compare, google_adamw


@pytest.mark.parametrize("decay", [0.0, 0.01])
def test_the_update_is_the_published_one(decay):
    draw = np.random.default_rng(5)
    weight, gradients = draw.normal(size=7), draw.normal(size=[4, 7])
    ours, moments = weight.copy(), (np.zeros(7), np.zeros(7))
    for gradient in gradients:
        google_adamw(ours, gradient, moments, RATE, decay)
    np.testing.assert_allclose(ours, numpy_steps(weight, gradients, decay), rtol=1e-12)


def test_logits_stand_in_the_order_of_the_rows():
    batches = [np.array([2, 0]), np.array([1])]
    work = Work([], [], [], batches, 1)
    logits = [np.array([[2.0], [0.0]]), np.array([[1.0], [99.0]])]  # the last batch is filled up
    assert work.course([], iter(logits)).logits.tolist() == [[0.0], [1.0], [2.0]]


def test_in_reverse_each_batch_has_the_same_rows():
    batch = {"input_ids": np.array([[1, 2], [3, 4]]), "label_ids": np.array([5, 6])}
    (reverse,) = Work([batch], [0.1], [], [], 2).in_reverse().batches
    assert reverse["input_ids"].tolist() == [[3, 4], [1, 2]]
    assert reverse["label_ids"].tolist() == [6, 5]


def test_a_regression_has_numbers_in_place_of_predictions():
    ours, theirs = Course([1.0], np.array([[2.0]])), Course([1.0], np.array([[2.5]]))
    assert compare(ours, theirs) == {
        "largest_loss_difference": 0.0,
        "largest_logit_difference": 0.5,
    }


def test_peers_that_are_not_installed_are_named(monkeypatch, capsys):
    monkeypatch.setattr(transformers_parity, "_is_installed", lambda name: name == "torch")
    assert transformers_parity.main(["--data_dir=glue", "--init_checkpoint=model"]) == 1
    assert "transformers not installed; pip install transformers" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.bench
def test_both_take_the_same_steps(tmp_path, capsys):
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers is not installed; pip install 'keras_bert_impl[bench]'")
    write_cola(tmp_path / "glue" / "CoLA")
    write_sts(tmp_path / "glue" / "STS-B")
    arguments = [
        f"--data_dir={tmp_path}/glue", f"--init_checkpoint={write_encoder(tmp_path / 'model')}",
        "--tasks=CoLA,STS-B", "--max_seq_length=12", "--train_batch_size=4", "--num_steps=10",
        "--num_warmup_steps=2", "--learning_rate=1e-3",
    ]  # fmt: skip
    assert transformers_parity.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    cola, sts = (json.loads(line) for line in lines if line.startswith("{"))
    assert cola["largest_loss_difference"] < 1e-5 > sts["largest_loss_difference"]
    assert cola["same_predictions"] == cola["predictions"] == 10
