import numpy as np

from keras_bert_impl.models.multiple_choice import BertMultipleChoice
from tests.support.head_checks import check_against_numpy, check_outputs, check_saving
from tests.support.tiny_bert import TINY, features, scatter_weights


def make_model():
    return BertMultipleChoice(TINY, num_choices=2)


def batch_of_choices():
    batch = features()
    return {name: np.stack([batch[name]] * 2, axis=1) for name in list(batch)[:3]}


def test_it_gives_float32_scores():
    check_outputs(make_model(), batch_of_choices(), {"logits": (2, 2)})


def test_it_survives_saving_and_the_model_directory(tmp_path):
    check_saving(make_model, batch_of_choices(), tmp_path)


def test_outputs_and_gradients_are_those_of_an_independent_model(tmp_path):
    check_against_numpy(make_model(), "choice", batch_of_choices(), tmp_path)


def test_equal_choices_score_equally_and_others_do_not():
    model, batch = scatter_weights(make_model()), batch_of_choices()
    batch["input_ids"][1, 1, 1] += 1
    scores = np.array(model(batch)["logits"])
    assert scores[0, 0] == scores[0, 1]
    assert scores[1, 0] != scores[1, 1]
