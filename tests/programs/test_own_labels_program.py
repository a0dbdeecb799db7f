"""run_classifier on files of one's own: from files to a SavedModel that answers like the tables."""

import contextlib
import io
import json
from functools import partial

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401  (the ops of the text signatures)

from pipelines.tables.files import open_table
from tests.support.labelled_files import write_numbers, write_several
from tests.support.model_folders import write_start
from tools import export_saved_model, run_classifier

pytestmark = pytest.mark.slow

KINDS = {
    "several": (write_several, "jsonl", []),
    "number": (
        partial(write_numbers, mean=4000.0, apart=50.0),
        "tsv",
        ["--regression", "--text_column=2", "--label_column=1"],
    ),
}
FIGURES = {
    "several": ("eval_accuracy", "eval_macro_f1", "eval_micro_f1"),
    "number": ("eval_pearson", "eval_spearman"),
}


def run_tool(tool, *flags):
    """Runs a tool in this process, which has loaded TensorFlow; gives what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert tool.main(flags) == 0
    return printed.getvalue()


@pytest.fixture(scope="module", params=KINDS)
def run(request, tmp_path_factory):
    """A run that can be learned, and its export."""
    folder, (write, ending, flags) = tmp_path_factory.mktemp("own"), KINDS[request.param]
    rates = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    write_start(folder / "encoder", **rates)
    files = {}
    for seed, (split, count) in enumerate({"train": 90, "dev": 24, "test": 9}.items()):
        files[split] = write(folder / f"{split}.{ending}", count, seed=seed)
    run_tool(
        run_classifier,
        *(f"--{split}_file={path}" for split, path in files.items()),
        f"--output_dir={folder}/run",
        f"--init_checkpoint={folder}/encoder",
        "--do_train",
        "--do_eval",
        "--do_predict",
        "--max_seq_length=12",
        "--train_batch_size=8",
        "--notrim_padding",  # each length of a batch costs seconds of tracing
        "--num_train_epochs=20",
        "--learning_rate=5e-3",
        *flags,
    )
    export = [f"--model={folder}/run/model", f"--output_dir={folder}/saved", "--noverify"]
    run_tool(export_saved_model, *export)
    return request.param, folder


def table(path):
    return [record.values for record in open_table(str(path)).records()]


def test_the_labels_are_learned_and_scored(run):
    kind, folder = run
    lines = (folder / "run" / "eval_results.txt").read_text().splitlines()
    figures = {name: float(value) for name, value in (line.split(" = ") for line in lines)}
    for name in FIGURES[kind]:
        assert figures[name] > 0.9, name
        assert figures[name.replace("eval_", "eval_test_")] > 0.9


def test_the_model_directory_says_the_labels(run):
    kind, folder = run
    config = json.loads((folder / "run" / "model" / "config.json").read_text())
    labels = {"several": ["no dog", "the"], "number": ["score"]}
    assert list(config["id2label"].values()) == labels[kind]


def test_served_answers_are_those_of_the_tables(run):
    kind, folder = run
    rows = table(folder / "run" / "dev_predictions.tsv")
    served = tf.saved_model.load(str(folder / "saved")).signatures["text"]
    outputs = served(text=tf.constant([row["text"] for row in rows]))
    if kind == "number":
        found = [float(row["prediction"]) for row in rows]
        np.testing.assert_allclose(outputs["score"], found, rtol=1e-4, atol=1e-5)
        return
    found = [[float(row[name]) for name in row if name.startswith("P(")] for row in rows]
    np.testing.assert_allclose(outputs["probabilities"], found, atol=2e-6)
    labels = [[one.decode() for one in row if one] for row in outputs["labels"].numpy()]
    assert labels == [json.loads(row["prediction"]) for row in rows]


def test_a_trained_model_answers_without_the_training_file(run, tmp_path):
    kind, folder = run
    (test,) = folder.glob("test.*")
    printed = run_tool(
        run_classifier,
        f"--test_file={test}",
        f"--output_dir={tmp_path}/again",
        f"--init_checkpoint={folder}/run/model",
        "--do_predict",
        "--max_seq_length=12",
        *KINDS[kind][2][1:],
    )
    assert "test_predictions.tsv" in printed
    again, first = (table(p / "test_predictions.tsv") for p in (tmp_path / "again", folder / "run"))
    if kind == "number":  # the bias was written with the mean in it: one rounding of float32
        numbers = [float(row["prediction"]) for row in first]
        assert [float(row["prediction"]) for row in again] == pytest.approx(numbers, rel=2e-7)
    else:
        assert [row["prediction"] for row in again] == [row["prediction"] for row in first]
