"""XNLI's reader on files in its layout (written here, not XNLI's text)."""

import pytest

from pipelines.fine_tuning.text_rows import TextExample as Example
from pipelines.tasks.labels.glue import find_task

HEADER = (
    "language|gold_label|sentence1_binary_parse|sentence2_binary_parse|sentence1_parse|"
    "sentence2_parse|sentence1|sentence2|promptID|pairID|genre|label1|label2|label3|label4|label5|"
    "sentence1_tokenized|sentence2_tokenized|match"
)


def row(language, label, first, second):
    return f"{language}|{label}||||| {first}|{second}|1|1|facetoface|||||| {first}|{second}|True"


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line.replace("|", "\t") + "\n" for line in lines), encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    lines = [
        HEADER,
        row("ar", "neutral", "A.", "B."),
        row("zh", "contradiction", "C.", "D."),
        row("ar", "entailment", "E.", "F."),
    ]
    write(tmp_path / "xnli.dev.tsv", lines)
    write(
        tmp_path / "multinli" / "multinli.train.zh.tsv",
        ["premise|hypo|label", "A.|B.|neutral", 'C "c".|D.|contradictory'],
    )
    return tmp_path


def task(folder, language):
    return find_task(f"XNLI-{language}").at(folder)


def test_a_row_counts_where_it_is_in_the_tasks_language(folder):
    assert list(task(folder, "zh").examples("dev")) == [Example("0", " C.", "D.", "contradiction")]
    assert [example.label for example in task(folder, "ar").examples("dev")] == [
        "neutral",
        "entailment",
    ]


def test_the_translated_training_set_calls_a_contradiction_contradictory(folder):
    assert list(task(folder, "zh").examples("train")) == [
        Example("0", "A.", "B.", "neutral"),
        Example("1", 'C "c".', "D.", "contradiction"),
    ]


def test_the_labelled_test_set_is_scored_too(folder):
    write(folder / "xnli.test.tsv", [HEADER, row("ar", "neutral", "A.", "B.")])
    found = task(folder, "ar")
    assert found.evaluation_splits == ("dev", "test")
    assert next(iter(found.examples("test"))).label == "neutral"
