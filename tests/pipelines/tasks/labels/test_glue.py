"""Each task's reader on files in the layout of GLUE's archive (written here, not GLUE's text)."""

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from pipelines.fine_tuning.text_rows import TextExample as Example
from pipelines.fine_tuning.text_rows import text_rows
from pipelines.tasks.labels.glue import AX, COLA, GLUE_TASKS, MNLI, MRPC, QQP, RTE
from tests.support.model_folders import WORD_VOCABULARY

TOKENIZER = Tokenizer(TextSettings(WORD_VOCABULARY))


def write(folder, split, lines):
    text = "".join(line.replace("|", "\t") + "\n" for line in lines)
    (folder / f"{split}.tsv").write_text(text, encoding="utf-8")


def answered(task, examples, logits):
    """The examples with their answers, as a run gives them to a task."""
    rows = text_rows(examples, TOKENIZER, 16)
    return list(zip(examples, task.answers(examples, rows, {"logits": logits}), strict=True))


def test_an_unknown_label_names_file_line_and_the_known_labels(tmp_path):
    write(tmp_path, "dev", ["gj04|1||Fine.", "gj04|yes||Bad label."])
    with pytest.raises(UserError, match=r"dev\.tsv: line 2: unknown label 'yes'; .* one of 0, 1"):
        list(COLA.at(tmp_path).examples("dev"))


def test_only_qqp_leaves_out_rows_that_a_line_break_cut(tmp_path):
    header = "id|qid1|qid2|question1|question2|is_duplicate"
    write(tmp_path, "train", [header, "7|1|2|Why is", "this?|How?|0", "8|3|4|Who?|What?|1"])
    assert list(QQP.at(tmp_path).examples("train")) == [Example("0", "Who?", "What?", "1")]


def test_no_row_of_a_test_set_is_left_out(tmp_path):
    write(tmp_path, "test", ["id|question1|question2", "0|Why?"])
    with pytest.raises(UserError, match="line 2 has 2 columns instead of 3"):
        list(QQP.at(tmp_path).examples("test"))


def test_a_score_compares_the_most_probable_label_with_the_true_one():
    examples = [Example(str(i), "A.", "B.", label) for i, label in enumerate("1101")]
    logits = np.array([[0, 1], [1, 0], [1, 0], [0, 1]], np.float32)
    scores = MRPC.score(answered(MRPC, examples, logits))
    assert scores == {"accuracy": 0.75, "f1": 0.8}


def test_predictions_are_written_as_probabilities_and_as_a_submission(tmp_path):
    examples = [Example("4", "A.", "B."), Example("5", "C.", "D.")]
    logits = np.log(np.array([[0.25, 0.75], [0.5, 0.125]], np.float32))
    paths = RTE.write(tmp_path, "test", answered(RTE, examples, logits))
    assert [path.name for path in paths] == ["test_results.tsv", "RTE.tsv"]
    assert paths[0].read_text() == "0.25\t0.75\n0.8\t0.2\n"
    assert paths[1].read_text() == "index\tprediction\n4\tnot_entailment\n5\tentailment\n"


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
    ("WNLI", "dev", [
        "index|sentence1|sentence2|label",
        "0|A.|B.|1",
    ], [Example("0", "A.", "B.", "1")]),
    ("AX", "diagnostic", [
        "index|sentence1|sentence2",
        "3|A.|B.",
    ], [Example("3", "A.", "B.")]),
    ("AX", "diagnostic-full", [
        "Lexical Semantics|Predicate-Argument Structure|Logic|Knowledge|Domain|Premise|Hypothesis|"
        "Label",
        "|||World knowledge|Reddit|A.|B.|neutral",
    ], [Example("0", "A.", "B.", "neutral")]),
]
# fmt: on
BY_NAME = {task.name: task for task in GLUE_TASKS}


@pytest.mark.parametrize(
    ("name", "split", "lines", "examples"), LAYOUTS, ids=lambda v: v if isinstance(v, str) else ""
)
def test_each_task_reads_its_own_layout(tmp_path, name, split, lines, examples):
    write(tmp_path, split, lines)
    assert list(BY_NAME[name].at(tmp_path).examples(split)) == examples


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "train", "dev"),
    [("CoLA", 8551, 1043), ("SST-2", 67349, 872), ("MRPC", 3668, 408), ("STS-B", 5749, 1500)],
)
def test_glues_own_files_are_read_whole(data_folder, name, train, dev):
    task = BY_NAME[name].at(data_folder / "glue" / name)
    assert len(list(task.examples("train"))) == train
    assert len(list(task.examples("dev"))) == dev


def test_the_diagnostics_are_answered_by_a_model_of_mnli(tmp_path):
    with pytest.raises(UserError, match=r"AX has no training set; train on MNLI and .*checkpoint"):
        AX.at(tmp_path).files("train")
    assert AX.head_of.labels == MNLI.head_of.labels
    logits = np.array([[0.0, 9.0, 0.0]], np.float32)
    paths = AX.write(tmp_path, "diagnostic", answered(AX, [Example("7", "A.", "B.")], logits))
    assert [path.name for path in paths] == ["test_results.tsv", "AX.tsv"]
    assert paths[1].read_text() == "index\tprediction\n7\tentailment\n"
