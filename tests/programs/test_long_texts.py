"""Documents whose deciding word stands after the model's limit: trained, scored and served."""

import json
from functools import cache

import numpy as np
import pytest

from keras_bert_impl.tokenization.long_texts import LongTexts
from keras_bert_impl.training.config import TrainingConfig
from pipelines.tasks.labels.options import RunClassifierConfig
from pipelines.tasks.labels.task import run_classifier
from tests.support import long_documents
from tests.support.model_folders import WORDS, write_start

pytestmark = pytest.mark.slow

LIMIT = 12
WINDOWS = LongTexts(long_text="windows", doc_stride=5)


def write_documents(folder, split, count, seed):
    """Texts of 14 to 30 words; a word after the limit decides: "list" is 0, "value" is 1."""
    draw, lines = np.random.default_rng(seed), []
    for number in range(count):
        words = draw.choice(WORDS[:6], draw.integers(LIMIT + 2, 31))
        words[draw.integers(LIMIT, len(words))] = ("list", "value")[number % 2]
        lines.append(f"{' '.join(words)}\t{number % 2}\n")
    (folder / f"{split}.tsv").write_text("sentence\tlabel\n" + "".join(lines))


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    folder = tmp_path_factory.mktemp("documents")
    write_documents(folder, "train", 300, seed=1)
    write_documents(folder, "dev", 80, seed=2)
    write_documents(folder, "test", 40, seed=3)
    return folder


@pytest.fixture(scope="module")
def trained(documents, tmp_path_factory):
    """Trains with long texts treated in a way; gives the run's folder and its accuracy."""
    folder = tmp_path_factory.mktemp("runs")
    rates = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    encoder = write_start(folder / "encoder", **rates)

    @cache
    def train(name, long_texts, pooling=None):
        config = RunClassifierConfig(
            task_name="SST-2",
            data_dir=documents,
            output_dir=folder / name,
            init_checkpoint=str(encoder),
            do_train=True,
            do_eval=True,
            do_predict=True,
            max_seq_length=LIMIT,
            num_train_epochs=8.0,
            long_texts=long_texts,
            pooling=pooling,
            training=TrainingConfig(
                learning_rate=2e-3, num_train_steps=1, num_warmup_steps=0, train_batch_size=32
            ),
        )
        return config.output_dir, run_classifier(config).evaluation["eval_accuracy"]

    return train


def test_the_two_ends_see_what_stands_at_the_end(documents, trained):
    """The deciding word is among the last nine of 14 to 30 in about two of three documents."""
    _, truncated = trained("truncate", LongTexts())
    folder, ends = trained("ends", LongTexts(long_text="head_tail"))
    assert ends >= truncated + 0.1
    assert (folder / "test_results.tsv").read_text().count("\n") == 40


def test_documents_of_a_corpus_hide_their_deciding_sentence_in_it(tmp_path):
    """What tests/support/long_documents.py writes for RESULTS.md, which trains on it."""
    for split in ("train", "dev"):
        lines = [f"a {('dull', 'fine')[n % 2]} film of {split} {n}\t{n % 2}\n" for n in range(40)]
        (tmp_path / f"{split}.tsv").write_text("sentence\tlabel\n" + "".join(lines))
    filler = [f"sentence {number} says nothing much.\n\nHeading\n" for number in range(400)]
    (tmp_path / "filler.txt").write_text("".join(filler))
    flags = [f"--data_dir={tmp_path}", f"--filler_file={tmp_path}/filler.txt", "--num_train=20"]
    flags += ["--num_dev=10", "--words_before=30", "--words_after=12", "--least_words=5"]
    written = []
    for _ in range(2):
        long_documents.main([*flags, f"--output_dir={tmp_path}/long"])
        written.append((tmp_path / "long" / "train.jsonl").read_bytes())
    assert written[0] == written[1]
    seen = set()
    for split, count in (("train", 20), ("dev", 10)):
        text = (tmp_path / "long" / f"{split}.jsonl").read_text()
        rows = [json.loads(line) for line in text.splitlines()]
        assert [row["label"] for row in rows] == ["negative", "positive"] * (count // 2)
        for row in rows:
            words = row["text"].split()
            word = {"negative": "dull", "positive": "fine"}[row["label"]]
            assert words.index(word) == row["words_before"] + 1 >= 31
            assert len(words) - row["words_before"] - 6 <= 12 + 4
            assert f"film of {split}" in row["text"]
            assert "Heading" not in words
            numbers = {words[at + 1] for at, one in enumerate(words) if one == "sentence"}
            assert not seen & numbers  # no document shares filler with another
            seen |= numbers
