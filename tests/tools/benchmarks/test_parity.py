import importlib.util
import json

import numpy as np
import pytest

from tests.support.adamw_formula import RATE, numpy_steps
from tests.support.glue_files import write_cola, write_sts
from tests.support.model_folders import write_encoder
from tests.support.squad_files import write_squad
from tools.benchmarks import parity
from tools.benchmarks.parity import Peer, TrainingRun, Work, compare, decisions, google_adamw


def test_peers_that_are_not_installed_are_named(monkeypatch, capsys):
    monkeypatch.setattr(parity, "missing", lambda *names: ["transformers"])
    assert parity.main(["--data_dir=glue", "--init_checkpoint=model"]) == 1
    assert "transformers not installed; pip install transformers" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ([], "nothing says what to compare; give --data_dir, --train_file or --tags_dir"),
        (["--train_file=train.json"], "--train_file and --predict_file go together"),
    ],
)
def test_without_files_there_is_nothing_to_compare(capsys, flags, sentence):
    assert parity.main(["--init_checkpoint=model", *flags]) == 1
    assert sentence in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.bench
def test_both_take_the_same_steps(tmp_path, capsys):
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers is not installed; pip install '.[bench]'")
    write_cola(tmp_path / "glue" / "CoLA")
    write_sts(tmp_path / "glue" / "STS-B")
    write_squad(tmp_path / "train.json")
    write_squad(tmp_path / "dev.json", 8, seed=2)
    (tmp_path / "tags").mkdir()
    for name in ("train", "dev"):
        sentences = "the O\ndog B-ANIMAL\nruns O\n\na O\ncat B-ANIMAL\nsleeps O\n\n" * 4
        (tmp_path / "tags" / f"{name}.txt").write_text(sentences)
    arguments = [
        f"--data_dir={tmp_path}/glue", f"--init_checkpoint={write_encoder(tmp_path / 'model')}",
        "--tasks=CoLA,STS-B", f"--train_file={tmp_path}/train.json",
        f"--predict_file={tmp_path}/dev.json", f"--tags_dir={tmp_path}/tags",
        "--max_seq_length=12", "--max_query_length=4", "--train_batch_size=4", "--num_steps=10",
        "--num_warmup_steps=2", "--learning_rate=1e-3",
    ]  # fmt: skip
    assert parity.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    found = [json.loads(line) for line in lines if line.startswith("{")]
    assert all(one["largest_loss_difference"] < 1e-5 for one in found)
    assert all(one.get("same_predictions") == one.get("predictions") for one in found)
    assert [one.get("predictions") for one in found][::3] == [10, 24]
    assert found[2]["predictions"] >= 16  # starts and ends of eight questions' windows


@pytest.mark.parametrize("decay", [0.0, 0.01])
def test_the_update_is_the_published_one(decay):
    draw = np.random.default_rng(5)
    weight, gradients = draw.normal(size=7), draw.normal(size=[4, 7])
    ours, moments = weight.copy(), (np.zeros(7), np.zeros(7))
    for gradient in gradients:
        google_adamw(ours, gradient, moments, RATE, decay)
    np.testing.assert_allclose(ours, numpy_steps(weight, gradients, decay), rtol=1e-12)


def test_logits_stand_in_the_order_of_the_rows():
    rows = [np.array([2, 0]), np.array([1])]
    work = Work([], [], [{}, {}], rows, Peer.of_texts(1))
    logits = [np.array([[2.0], [0.0]]), np.array([[1.0], [99.0]])]  # the last batch is filled up
    outputs = ({"logits": array} for array in logits)
    assert work.finished([], outputs).logits.tolist() == [[0.0], [1.0], [2.0]]


def test_starts_and_ends_are_decided_among_the_tokens_of_a_row():
    batches = [{"input_mask": np.array([[1, 1], [1, 0]])}, {"input_mask": np.array([[1, 1, 1]])}]
    outputs = [
        {"start_logits": np.array([[1.0, 2.0], [3.0, 9.0]]), "end_logits": np.zeros([2, 2])},
        {"start_logits": np.array([[4.0, 5.0, 6.0]]), "end_logits": np.zeros([1, 3])},
    ]
    none = -np.inf
    logits, rows = decisions(batches[0], outputs[0], 2)
    assert logits.tolist() == [[1.0, 2.0], [3.0, none], [0.0, 0.0], [0.0, none]]
    assert rows.tolist() == [0, 1, 0, 1]
    work = Work([], [], batches, [np.array([1, 2]), np.array([0])], Peer.of_questions(2))
    found = work.finished([], iter(outputs)).logits
    assert found[:2].tolist() == [[4.0, 5.0, 6.0], [0.0, 0.0, 0.0]]
    assert found[4].tolist() == [3.0, none, none]


def test_where_there_is_no_choice_nothing_differs():
    one = TrainingRun([1.0], np.array([[0.5, -np.inf], [0.5, 0.25]]))
    other = TrainingRun([1.0], np.array([[0.25, -np.inf], [0.5, 0.75]]))
    assert compare(one, other) == {
        "largest_loss_difference": 0.0,
        "largest_logit_difference": 0.5,
        "same_predictions": 1,
        "predictions": 2,
    }


def test_in_reverse_each_batch_has_the_same_rows():
    batch = {"input_ids": np.array([[1, 2], [3, 4]]), "label_ids": np.array([5, 6])}
    (reverse,) = Work([batch], [0.1], [], [], Peer.of_texts(2)).in_reverse().batches
    assert reverse["input_ids"].tolist() == [[3, 4], [1, 2]]
    assert reverse["label_ids"].tolist() == [6, 5]


def test_a_regression_has_numbers_in_place_of_predictions():
    ours, theirs = TrainingRun([1.0], np.array([[2.0]])), TrainingRun([1.0], np.array([[2.5]]))
    assert compare(ours, theirs) == {
        "largest_loss_difference": 0.0,
        "largest_logit_difference": 0.5,
    }
