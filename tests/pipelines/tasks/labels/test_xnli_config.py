import pytest

from keras_bert_impl.errors import UserError
from pipelines.tasks.labels.options import LANGUAGES, XnliConfig


def test_xnli_has_fifteen_languages():
    assert len(LANGUAGES) == len(set(LANGUAGES)) == 15


def test_by_default_the_language_of_training_is_scored():
    assert XnliConfig(xnli_language="sw").scored == ("sw",)


def test_the_language_of_training_is_scored_first_because_it_chooses():
    scored = XnliConfig(xnli_language="zh", xnli_eval_languages=("all",)).scored
    assert scored[0] == "zh"
    assert sorted(scored) == sorted(LANGUAGES)


def test_a_language_to_train_on_that_is_not_there_is_refused():
    with pytest.raises(UserError, match="`xnli_language=xx` is unknown; choose ar, bg, "):
        XnliConfig(xnli_language="xx")
