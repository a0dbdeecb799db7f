"""What a run for questions may be told; the tool's tests hold the sentences."""

from dataclasses import replace
from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from pipelines.tasks.questions.options import RunSquadConfig


def config(**options):
    return RunSquadConfig(output_dir=Path("run"), **options)


def test_the_defaults_are_the_originals():
    defaults = config()
    lengths = defaults.max_seq_length, defaults.doc_stride, defaults.max_query_length
    answers = defaults.n_best_size, defaults.max_answer_length, defaults.threshold()
    assert (lengths, answers) == ((384, 128, 64), (20, 30, 0.0))
    assert not defaults.version_2_with_negative
    assert (defaults.training.train_batch_size, defaults.training.learning_rate) == (32, 5e-5)


@pytest.mark.parametrize(
    ("options", "name"), [({"do_train": True}, "train_file"), ({"do_eval": True}, "predict_file")]
)
def test_a_file_is_needed_for_what_reads_it(options, name):
    with pytest.raises(UserError, match=f"`{name}` is missing"):
        config(**options)
    assert config(**options, **{name: Path("questions.json")})


def test_a_trained_model_may_bring_what_a_given_option_needs():
    asked = config(
        max_seq_length=16, null_score_diff_threshold="auto", do_eval=True, predict_file="q"
    )
    for missing in ({}, {"max_query_length": 4}, {"version_2_with_negative": True}):
        with pytest.raises(UserError):
            replace(asked, **missing).check_together()
    replace(asked, max_query_length=4, version_2_with_negative=True).check_together()
