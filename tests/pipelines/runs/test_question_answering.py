"""From a run's configuration to its task; the tool's tests hold whole runs."""

from pathlib import Path

from pipelines.runs.question_answering import task_of
from pipelines.runs.question_answering_config import RunSquadConfig
from tests.support.model_folders import WORD_VOCABULARY, write_encoder


def test_the_task_has_the_options_and_the_models_text(tmp_path):
    config = RunSquadConfig(
        output_dir=tmp_path / "run",
        init_checkpoint=str(write_encoder(tmp_path / "encoder")),
        do_lower_case=True,
        predict_file=Path("dev.json"),
        doc_stride=7,
        max_query_length=5,
        n_best_size=3,
        max_answer_length=4,
        version_2_with_negative=True,
        null_score_diff_threshold=-1.5,
    )
    task = task_of(config)
    assert task.text.vocabulary == WORD_VOCABULARY
    assert task.settings == {
        "doc_stride": 7,
        "max_query_length": 5,
        "version_2_with_negative": True,
        "evidence_words": 400,
    }
    answers = task.answer_settings
    assert (answers.n_best_size, answers.max_answer_length) == (3, 4)
    assert task.null_score_diff_threshold == -1.5
    assert task.files("predict") == [Path("dev.json")]
