"""Each task's reader on files in the layout of GLUE's archive (written here, not GLUE's text)."""

import pytest

from pipelines.tasks.glue import GLUE_TASKS
from pipelines.tasks.task import Example

# task, split, lines with | for a tab, what is read
# fmt: off
LAYOUTS = [
    ("CoLA", "train", [
        "gj04|1||It rains.",
        "gj04|0|*|Rains it.",
    ], [Example("0", "It rains.", None, "1"), Example("1", "Rains it.", None, "0")]),
    ("CoLA", "test", [
        "index|sentence",
        "0|It rains.",
        "1|Rains it.",
    ], [Example("0", "It rains."), Example("1", "Rains it.")]),
    ("SST-2", "dev", [
        "sentence|label",
        "a fine film |1",
    ], [Example("0", "a fine film ", None, "1")]),
    ("SST-2", "test", [
        "index|sentence",
        "0|a fine film",
    ], [Example("0", "a fine film")]),
    ("MRPC", "dev", [
        "Quality|#1 ID|#2 ID|#1 String|#2 String",
        "1|70|71|A.|B.",
    ], [Example("0", "A.", "B.", "1")]),
    ("MRPC", "test", [
        "index|#1 ID|#2 ID|#1 String|#2 String",
        "5|70|71|A.|B.",
    ], [Example("5", "A.", "B.")]),
    ("STS-B", "train", [
        "index|genre|filename|year|old_index|source1|source2|sentence1|sentence2|score",
        "0|g|f|2012|1|n|n|A.|B.|3.800",
    ], [Example("0", "A.", "B.", "3.800")]),
    ("STS-B", "test", [
        "index|genre|filename|year|old_index|source1|source2|sentence1|sentence2",
        "9|g|f|2012|1|n|n|A.|B.",
    ], [Example("9", "A.", "B.")]),
    ("QQP", "train", [
        "id|qid1|qid2|question1|question2|is_duplicate",
        "133273|1|2|Why?|How?|0",
    ], [Example("0", "Why?", "How?", "0")]),
    ("QQP", "test", [
        "id|question1|question2",
        "4|Why?|How?",
    ], [Example("4", "Why?", "How?")]),
    ("MNLI", "train", [
        "index|promptID|pairID|genre|sentence1_binary_parse|sentence2_binary_parse|"
        "sentence1_parse|sentence2_parse|sentence1|sentence2|label1|gold_label",
        "0|1|1n|fiction|p|p|p|p|A.|B.|neutral|neutral",
    ], [Example("0", "A.", "B.", "neutral")]),
    ("MNLI", "dev_mismatched", [
        "index|promptID|pairID|genre|sentence1_binary_parse|sentence2_binary_parse|"
        "sentence1_parse|sentence2_parse|sentence1|sentence2|label1|label2|label3|label4|label5|gold_label",
        "0|1|1n|fiction|p|p|p|p|A.|B.|neutral|neutral|neutral|entailment|entailment|"
        "entailment",
    ], [Example("0", "A.", "B.", "entailment")]),
    ("MNLI", "test_matched", [
        "index|promptID|pairID|genre|sentence1_binary_parse|sentence2_binary_parse|"
        "sentence1_parse|sentence2_parse|sentence1|sentence2",
        "17|1|1n|fiction|p|p|p|p|A.|B.",
    ], [Example("17", "A.", "B.")]),
    ("QNLI", "dev", [
        "index|question|sentence|label",
        "0|Who?|He.|not_entailment",
    ], [Example("0", "Who?", "He.", "not_entailment")]),
    ("QNLI", "test", [
        "index|question|sentence",
        "3|Who?|He.",
    ], [Example("3", "Who?", "He.")]),
    ("RTE", "train", [
        "index|sentence1|sentence2|label",
        "0|A.|B.|entailment",
    ], [Example("0", "A.", "B.", "entailment")]),
    ("RTE", "test", [
        "index|sentence1|sentence2",
        "0|A.|B.",
    ], [Example("0", "A.", "B.")]),
    ("WNLI", "dev", [
        "index|sentence1|sentence2|label",
        "0|A.|B.|1",
    ], [Example("0", "A.", "B.", "1")]),
    ("WNLI", "test", [
        "index|sentence1|sentence2",
        "2|A.|B.",
    ], [Example("2", "A.", "B.")]),
]
# fmt: on
BY_NAME = {task.name: task for task in GLUE_TASKS}


def write(folder, split, lines):
    text = "".join(line.replace("|", "\t") + "\n" for line in lines)
    (folder / f"{split}.tsv").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "split", "lines", "examples"), LAYOUTS, ids=lambda v: v if isinstance(v, str) else ""
)
def test_each_task_reads_its_own_layout(tmp_path, name, split, lines, examples):
    write(tmp_path, split, lines)
    assert BY_NAME[name].examples(tmp_path, split) == examples


def test_every_task_has_a_labelled_and_a_test_layout_above():
    for task in GLUE_TASKS:
        splits = {split for name, split, _, _ in LAYOUTS if name == task.name}
        assert splits & set(task.test_splits)
        assert splits & {task.train_split, *task.evaluation_splits}


def test_the_official_metrics_of_each_task():
    assert {task.name: tuple(task.metrics) for task in GLUE_TASKS} == {
        "CoLA": ("matthews_correlation", "accuracy"),
        "SST-2": ("accuracy",),
        "MRPC": ("accuracy", "f1"),
        "STS-B": ("pearson", "spearman"),
        "QQP": ("accuracy", "f1"),
        "MNLI": ("accuracy",),
        "QNLI": ("accuracy",),
        "RTE": ("accuracy",),
        "WNLI": ("accuracy",),
    }


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "train", "dev"),
    [
        ("CoLA", 8551, 1043),
        ("SST-2", 67349, 872),
        ("MRPC", 3668, 408),
        ("STS-B", 5749, 1500),
    ],
)
def test_glues_own_files_are_read_whole(data_folder, name, train, dev):
    task, folder = BY_NAME[name], data_folder / "glue" / name
    assert len(task.examples(folder, "train")) == train
    assert len(task.examples(folder, "dev")) == dev
