"""run_swag as a user runs it: trained until it knows, scored, answered, refused."""

import numpy as np
import pytest

from pipelines.tasks.choices.files import read_choices
from tests.support.choice_files import write_json_lines, write_swag
from tests.support.model_folders import write_encoder
from tools import run_swag

RATES = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    write_encoder(folder / "encoder", **RATES)
    write_swag(folder / "train.csv", 400, choices=2)
    write_swag(folder / "val.csv", 40, seed=2, choices=2)
    write_json_lines(folder / "more.jsonl", 10, seed=3, choices=2)
    return folder


def words(inputs, output, *flags):
    return [
        f"--init_checkpoint={inputs}/encoder",
        f"--data_dir={inputs}",
        f"--output_dir={output}",
        "--max_seq_length=12",
        "--train_batch_size=16",
        "--notrim_padding",  # each length of a batch costs seconds of tracing
        "--learning_rate=2e-3",
        "--num_train_epochs=12",
        "--do_train",
        "--do_predict",
        "--do_eval",
        *flags,
    ]


@pytest.mark.slow
def test_it_learns_scores_and_answers(inputs, tmp_path):
    run = tmp_path / "run"
    assert run_swag.main(words(inputs, run)) == 0
    lines = (run / "eval_results.txt").read_text().splitlines()
    figures = {name: float(value) for name, value in (line.split(" = ") for line in lines)}
    assert figures["eval_accuracy"] > 0.85

    table = [line.split("\t") for line in (run / "dev_predictions.tsv").read_text().splitlines()]
    assert table[0] == ["id", "prediction", "P(0)", "P(1)"]
    examples = list(read_choices(inputs / "val.csv", labelled=True))
    right = [int(row[1]) == x.label for row, x in zip(table[1:], examples, strict=True)]
    assert np.mean(right) == pytest.approx(figures["eval_accuracy"])

    # The trained model alone answers another file, in another form.
    new = [f"--test_file={inputs}/more.jsonl", f"--output_dir={run}", "--do_predict"]
    assert run_swag.main(new) == 0  # rows as long as in training
    assert (run / "test_predictions.tsv").read_text().count("\n") == 11


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--dev_file=/no/val.csv"], "/no/val.csv: no such file"),
        (["--nodo_train"], "holds no trained head for swag"),
    ],
)
def test_a_bad_flag_is_named(inputs, tmp_path, capsys, flags, sentence):
    assert run_swag.main([*words(inputs, tmp_path / "run"), *flags]) == 1
    error = capsys.readouterr().err
    assert sentence in error
    assert "Traceback" not in error
