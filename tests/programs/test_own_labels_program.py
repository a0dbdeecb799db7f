"""run_classifier on files of one's own: from files to a SavedModel that answers like the tables."""

import json

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401  (the ops of the text signatures)

from pipelines.tables.files import open_table
from tests.support.labelled_files import write_several
from tests.support.model_folders import write_start
from tools import export_saved_model, run_classifier


def table(path):
    return [record.values for record in open_table(str(path)).records()]


@pytest.mark.slow
def test_several_labels_of_a_text_are_learned_scored_and_served(tmp_path):
    rates = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    write_start(tmp_path / "encoder", **rates)
    files = {
        split: write_several(tmp_path / f"{split}.jsonl", count, seed=seed)
        for seed, (split, count) in enumerate({"train": 90, "dev": 24, "test": 9}.items())
    }
    run = tmp_path / "run"
    flags = [
        *(f"--{split}_file={path}" for split, path in files.items()),
        *(f"--output_dir={run}", f"--init_checkpoint={tmp_path}/encoder"),
        *("--do_train", "--do_eval", "--do_predict", "--max_seq_length=12"),
        "--notrim_padding",  # each length of a batch costs seconds of tracing
        *("--train_batch_size=8", "--num_train_epochs=20", "--learning_rate=5e-3"),
    ]
    assert run_classifier.main(flags) == 0
    lines = (run / "eval_results.txt").read_text().splitlines()
    figures = {name: float(value) for name, value in (line.split(" = ") for line in lines)}
    for name in ("accuracy", "macro_f1", "micro_f1"):
        assert min(figures[f"eval_{name}"], figures[f"eval_test_{name}"]) > 0.9, name
    config = json.loads((run / "model" / "config.json").read_text())
    assert list(config["id2label"].values()) == ["no dog", "the"]

    # Served answers are those of the tables.
    export = [f"--model={run}/model", f"--output_dir={tmp_path}/saved", "--noverify"]
    assert export_saved_model.main(export) == 0
    rows = table(run / "dev_predictions.tsv")
    served = tf.saved_model.load(str(tmp_path / "saved")).signatures["text"]
    outputs = served(text=tf.constant([row["text"] for row in rows]))
    found = [[float(row[name]) for name in row if name.startswith("P(")] for row in rows]
    np.testing.assert_allclose(outputs["probabilities"], found, atol=2e-6)
    labels = [[one.decode() for one in row if one] for row in outputs["labels"].numpy()]
    assert labels == [json.loads(row["prediction"]) for row in rows]
