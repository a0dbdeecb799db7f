"""GLUE's diagnostics as one command on files in its own layout."""

from tests.pipelines.tasks.labels.test_xnli import write
from tests.support.model_folders import write_classifier
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
