import pytest

from keras_bert_impl.errors import UserError
from tests.support.adaptation import toy_adaptation


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"task": "embed --model=x"}, "`task=embed`: begin with one of run_classifier"),
        ({"task": "run_ner data"}, "`task`: 'data' is no flag"),
        ({"data_flags": "--output_file='x"}, "`data_flags=.*close the quotation"),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path, changes, words):
    with pytest.raises(UserError, match=words):
        toy_adaptation(tmp_path, **changes)


def test_the_warm_up_and_the_evaluations_follow_the_steps(tmp_path):
    config = toy_adaptation(tmp_path, num_train_steps=2000)
    assert (config.warmup_steps, config.steps_between_evaluations) == (200, 100)
    told = toy_adaptation(tmp_path, num_warmup_steps=0, eval_steps=7)
    assert (told.warmup_steps, told.steps_between_evaluations) == (0, 7)
    assert toy_adaptation(tmp_path, num_train_steps=3).steps_between_evaluations == 1
