import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from pipelines.tasks.glue import COLA, MNLI, MRPC, QQP, RTE, STS_B
from pipelines.tasks.task import Example


def write(folder, split, lines):
    text = "".join(line.replace("|", "\t") + "\n" for line in lines)
    (folder / f"{split}.tsv").write_text(text, encoding="utf-8")


def test_an_unknown_label_names_file_line_and_the_known_labels(tmp_path):
    write(tmp_path, "dev", ["gj04|1||Fine.", "gj04|yes||Bad label."])
    with pytest.raises(UserError, match=r"dev\.tsv: line 2: unknown label 'yes'; .* '0' or '1'"):
        COLA.examples(tmp_path, "dev")


def test_only_qqp_leaves_out_rows_that_a_line_break_cut(tmp_path):
    header = "id|qid1|qid2|question1|question2|is_duplicate"
    write(tmp_path, "train", [header, "7|1|2|Why is", "this?|How?|0", "8|3|4|Who?|What?|1"])
    assert QQP.examples(tmp_path, "train") == [Example("0", "Who?", "What?", "1")]


def test_no_row_of_a_test_set_is_left_out(tmp_path):
    write(tmp_path, "test", ["id|question1|question2", "0|Why?"])
    with pytest.raises(UserError, match="line 2 has 2 tab-separated columns instead of 3"):
        QQP.examples(tmp_path, "test")


def test_rows_of_a_test_set_without_an_index_are_counted(tmp_path):
    header = "Quality|#1 ID|#2 ID|#1 String|#2 String"
    write(tmp_path, "test", [header, "1|7|8|A.|B.", "0|9|9|C.|D."])
    assert [e.identifier for e in MRPC.examples(tmp_path, "test")] == ["0", "1"]


def test_a_score_compares_the_most_probable_label_with_the_true_one():
    examples = [Example(str(i), "A.", "B.", label) for i, label in enumerate("1101")]
    logits = np.array([[0, 1], [1, 0], [1, 0], [0, 1]], np.float32)
    scores = MRPC.score(examples, {"logits": logits})
    assert scores == {"accuracy": 0.75, "f1": 0.8}


def test_a_regression_score_takes_the_number_itself():
    examples = [Example(str(i), "A.", "B.", label) for i, label in enumerate("0153")]
    logits = np.array([[0.1], [1.1], [5.9], [2.0]], np.float32)
    scores = STS_B.score(examples, {"logits": logits})
    assert scores["spearman"] == pytest.approx(1.0)
    assert 0.9 < scores["pearson"] < 1.0


def test_predictions_are_written_as_probabilities_and_as_a_submission(tmp_path):
    examples = [Example("4", "A.", "B."), Example("5", "C.", "D.")]
    logits = np.log(np.array([[0.25, 0.75], [0.5, 0.125]], np.float32))
    paths = RTE.write_predictions(tmp_path, "test", examples, {"logits": logits})
    assert [path.name for path in paths] == ["test_results.tsv", "RTE.tsv"]
    assert paths[0].read_text() == "0.25\t0.75\n0.8\t0.2\n"
    assert paths[1].read_text() == "index\tprediction\n4\tnot_entailment\n5\tentailment\n"


def test_the_second_test_set_of_mnli_has_files_of_its_own(tmp_path):
    logits = {"logits": np.array([[0.0, 0.0, 9.0]], np.float32)}
    examples = [Example("0", "A.", "B.")]
    written = [
        path.name
        for split in MNLI.test_splits
        for path in MNLI.write_predictions(tmp_path, split, examples, logits)
    ]
    assert written == [
        "test_results.tsv",
        "MNLI-m.tsv",
        "test_mismatched_results.tsv",
        "MNLI-mm.tsv",
    ]
