"""GLUE's diagnostics and XNLI, each as one command on files in its own layout."""

import json

import pytest

from tests.pipelines.tasks.labels.test_xnli import HEADER, row, write
from tests.support.model_folders import write_classifier, write_start
from tools import run_classifier

MNLI_LABELS = ["contradiction", "entailment", "neutral"]


def run(capsys, *words):
    code = run_classifier.main(["--max_seq_length=12", "--train_batch_size=8", *words])
    return code, capsys.readouterr()


def test_a_model_of_mnli_answers_the_diagnostics(tmp_path, capsys):
    model = write_classifier(tmp_path / "model", MNLI_LABELS)
    write(
        tmp_path / "diagnostic.tsv",
        ["index|sentence1|sentence2", "0|the dog runs|a cat sleeps", "1|the list|a value ."],
    )
    words = ["--task_name=AX", f"--data_dir={tmp_path}", f"--output_dir={tmp_path}/ax"]
    code, printed = run(capsys, *words, f"--init_checkpoint={model}", "--do_predict")
    assert (code, "AX.tsv" in printed.out) == (0, True)
    header, *lines = (tmp_path / "ax" / "AX.tsv").read_text().splitlines()
    assert header == "index\tprediction"
    assert [line.split("\t")[0] for line in lines] == ["0", "1"]
    assert {line.split("\t")[1] for line in lines} <= set(MNLI_LABELS)

    code, printed = run(capsys, *words, f"--init_checkpoint={model}", "--do_train")
    assert code == 1
    assert "--do_train: AX has no training set; train on MNLI" in printed.err


@pytest.mark.slow
def test_xnli_is_a_task_in_a_language(tmp_path, capsys):
    model = write_start(tmp_path / "model")
    pairs = [("the dog runs", "a cat sleeps"), ("a list", "the value"), ("the cat", "a dog .")]
    training = [
        f"{first}|{second}|{label}"
        for (first, second), label in zip(
            pairs * 8, ["contradictory", "entailment", "neutral"] * 8, strict=True
        )
    ]
    write(
        tmp_path / "XNLI-MT-1.0" / "multinli" / "multinli.train.zh.tsv",
        ["premise|hypo|label", *training],
    )
    labelled = [
        row(language, label, *pair)
        for language in ("ar", "zh")
        for pair, label in zip(pairs, MNLI_LABELS, strict=True)
    ]
    for split in ("dev", "test"):
        write(tmp_path / "XNLI-1.0" / f"xnli.{split}.tsv", [HEADER, *labelled])
    code, printed = run(
        capsys,
        "--task_name=xnli-zh",
        f"--data_dir={tmp_path}",
        f"--output_dir={tmp_path}/run",
        f"--init_checkpoint={model}",
        "--do_train",
        "--do_eval",
        "--do_predict",
    )
    assert code == 0, printed.err
    names = {line.split(" = ")[0] for line in printed.out.splitlines() if " = " in line}
    assert {"eval_accuracy", "eval_test_accuracy"} <= names
    assert len((tmp_path / "run" / "XNLI-zh.tsv").read_text().splitlines()) == 4
    settings = json.loads((tmp_path / "run" / "model" / "config.json").read_text())
    assert settings["label2id"] == {"contradiction": 0, "entailment": 1, "neutral": 2}
