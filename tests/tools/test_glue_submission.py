from pipelines.tasks.labels.glue import COLA
from tests.pipelines.tasks.labels.test_submission import write_answers
from tools import glue_submission


def test_the_archive_is_written_and_what_is_missing_is_said(tmp_path, capsys):
    write_answers(tmp_path / "runs" / "cola", COLA)
    words = [f"--run_dir={tmp_path}/runs", f"--output_file={tmp_path}/submission.zip"]
    assert glue_submission.main(words) == 0
    output = capsys.readouterr().out
    assert f"{tmp_path}/runs/cola/CoLA.tsv" in output
    assert "missing: AX.tsv, MNLI-m.tsv, MNLI-mm.tsv, MRPC.tsv" in output
    assert (tmp_path / "submission.zip").exists()
