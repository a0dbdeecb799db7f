"""What a run for questions may be told; the tool's tests hold the sentences."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from keras_bert_impl.checkpoints.task_settings import with_task_settings
from keras_bert_impl.errors import UserError
from pipelines.fine_tuning.start import with_kept_options
from pipelines.tasks.questions.options import RunSquadConfig, ScoreAnswersConfig
from tests.support.model_folders import tiny_config


def config(**options):
    return RunSquadConfig(output_dir=Path("run"), **options)


def test_the_defaults_are_the_originals():
    defaults = config()
    lengths = defaults.max_seq_length, defaults.doc_stride, defaults.max_query_length
    answers = defaults.n_best_size, defaults.max_answer_length, defaults.threshold()
    assert (lengths, answers) == ((384, 128, 64), (20, 30, 0.0))
    assert not defaults.version_2_with_negative
    assert (defaults.training.train_batch_size, defaults.training.learning_rate) == (32, 5e-5)


@pytest.mark.parametrize("missing", ["version_2_with_negative", "do_eval"])
def test_a_threshold_to_be_found_asks_for_what_is_missing_only(missing):
    options = {"version_2_with_negative": True, "do_eval": True, missing: False}
    files = {"train_file": Path("x"), "predict_file": Path("x")}
    with pytest.raises(UserError, match=f"add `{missing}=True`, or give a number"):
        config(do_train=True, null_score_diff_threshold="auto", **files, **options)


def test_a_threshold_without_odds_is_refused():
    files = {"data_file": Path("x"), "predictions_file": Path("x")}
    with pytest.raises(UserError, match=r"threshold=-3\.0` is held against odds; give `null_odds_"):
        ScoreAnswersConfig(null_score_diff_threshold=-3.0, version_2_with_negative=True, **files)


@pytest.mark.parametrize(("file", "share"), [("predict_file", 0.0), ("train_file", 0.1)])
def test_articles_that_a_model_held_out_are_those_of_its_training_file_alone(file, share):
    model = with_task_settings(tiny_config(), {"task": "squad", "dev_share": 0.1, "dev_seed": 3})
    source = SimpleNamespace(config=model, found_text=None, checkpoint="model")
    kept = with_kept_options(config(**{file: Path("x")}), source)
    assert (kept.dev_share, kept.dev_seed) == (share, 3 if share else 0)
