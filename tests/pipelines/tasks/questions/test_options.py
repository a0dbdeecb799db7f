"""What a run for questions may be told; the tool's tests hold the sentences."""

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


@pytest.mark.parametrize("missing", ["version_2_with_negative", "do_eval"])
def test_a_threshold_to_be_found_asks_for_what_is_missing_only(missing):
    options = {"version_2_with_negative": True, "do_eval": True, missing: False}
    files = {"train_file": Path("x"), "predict_file": Path("x")}
    with pytest.raises(UserError, match=f"add `{missing}=True`, or give a number"):
        config(do_train=True, null_score_diff_threshold="auto", **files, **options)
