"""Every kind of labels is served as it answers offline: labels and probabilities of a whole set.

Several labels, with the exported SavedModel, are in `test_own_labels_program`.
"""

import csv
import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from keras_bert_impl.checkpoints.task_settings import with_task_settings
from keras_bert_impl.tokenization.long_texts import LongTexts
from pipelines.fine_tuning.run import fine_tune
from pipelines.tables.files import open_table
from pipelines.tasks.labels.options import LabelledTextsConfig, RunClassifierConfig
from pipelines.tasks.labels.task import task_of
from pipelines.tasks.register import open_and_serve
from tests.support.glue_files import write_sts
from tests.support.model_folders import WORDS, tiny_config, write_any

pytestmark = pytest.mark.slow

ROWS, LENGTH = 40, 10
MEAN = LongTexts(long_text="windows", doc_stride=3)
HIGHEST = LongTexts(long_text="windows", doc_stride=4, window_answers="max")
ENDS = LongTexts(long_text="head_tail")

TEXT, PAIR = ("text",), ("sentence1", "sentence2")
ONE = [(label,) for label in ("no", "yes", "may be", "é, ß")]
LISTS = [(json.dumps(held),) for held in ([], ["dog"], ["dog", "é"], ["é"])]
NUMBERS = [("-1.5",), ("0",), ("2.25",), ("3",)]
NUMBER = {"regression": True}

OWN = {
    "classes of pairs in windows": (PAIR, ONE, {}, HIGHEST),
    "classes of two ends": (PAIR, ONE, {}, ENDS),
    "several labels of pairs in windows": (PAIR, LISTS, {}, MEAN),
    "numbers of pairs in windows": (PAIR, NUMBERS, NUMBER, HIGHEST),
}


def write_own(path, texts, labels, seed):
    """Texts of 0 to 30 words, some with line breaks and quotation marks; labels by turns."""
    draw = np.random.default_rng(seed)

    def text(number):
        words = " ".join(draw.choice(WORDS, draw.integers(1, 31)))
        return ["", f'"{words}",\n dog', words, words][number % 4] if number < 8 else words

    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([*texts, "label"])
        for number in range(ROWS):
            rows.writerow([*(text(number) for _ in texts), *labels[number % len(labels)]])
    return str(path)


def answered(folder, **task):
    """Answers with a model of random weights; gives the config and what serves the model."""
    config = RunClassifierConfig(
        output_dir=folder / "run",
        do_train=True,
        max_seq_length=LENGTH,
        trim_padding=False,  # one length: each is traced once
        **task,
    )
    labels = task_of(config)  # as training makes it, and what it leaves in the model directory
    settings = {"task": labels.name, **labels.settings, "max_seq_length": LENGTH}
    model = labels.head(with_task_settings(labels.configure(tiny_config()), settings)).model
    model_folder = write_any(folder / "model", model)
    answering = replace(config, do_train=False, do_predict=True, init_checkpoint=str(model_folder))
    fine_tune(answering, task_of)
    _, served = open_and_serve(model_folder)
    return answering, partial(answers_of, served)


def answers_of(served, texts, pairs):
    if pairs is None:
        outputs = served.call("text", {"text": texts})
    else:
        outputs = served.call("text_pair", {"text_a": texts, "text_b": pairs})
    return {name: values.numpy() for name, values in outputs.items()}


def read_predictions(config):
    path = config.output_dir / "dev_predictions.tsv"
    return [record.values for record in open_table(str(path)).records()]


@pytest.mark.parametrize("kind", OWN)
def test_files_of_ones_own(tmp_path, kind):
    texts, labels, options, long_texts = OWN[kind]
    files = {
        f"{split}_file": write_own(tmp_path / f"{split}.csv", texts, labels, seed)
        for seed, split in enumerate(("train", "dev"))
    }
    config, answers = answered(
        tmp_path, own=LabelledTextsConfig(**files, **options), long_texts=long_texts
    )
    rows = read_predictions(config)
    assert len(rows) == ROWS
    pairs = [row["text_pair"] for row in rows] if len(texts) > 1 else None
    served = answers([row["text"] for row in rows], pairs)
    if labels is NUMBERS:
        offline = [float(row["prediction"]) for row in rows]
        np.testing.assert_allclose(served["score"], offline, rtol=2e-5, atol=2e-5)
        return
    offline = [[float(row[name]) for name in row if name.startswith("P(")] for row in rows]
    np.testing.assert_allclose(served["probabilities"], offline, atol=3e-6)
    if labels is ONE:
        found = [label.decode() for label in served["label"]]
    else:
        found = [
            json.dumps([label.decode() for label in held if label], ensure_ascii=False)
            for held in served["labels"]
        ]
    assert found == [row["prediction"] for row in rows]


def test_a_task_of_glue(tmp_path):
    config, answers = answered(tmp_path, task_name="STS-B", data_dir=write_sts(tmp_path / "data"))
    examples = list(task_of(config).examples("test"))
    served = answers([one.text_a for one in examples], [one.text_b for one in examples])
    offline = np.loadtxt(config.output_dir / "test_results.tsv")
    np.testing.assert_allclose(served["score"], offline, rtol=1e-5, atol=1e-5)
