from keras_bert_impl.models.token_models import BertTokenClassifier
from tests.support.head_checks import check_against_numpy, check_outputs, check_saving
from tests.support.tiny_bert import TINY, features


def make_model():
    return BertTokenClassifier(TINY, num_labels=5)


def test_it_gives_float32_scores():
    check_outputs(make_model(), features(), {"logits": (2, 8, 5)})


def test_it_survives_saving_and_the_model_directory(tmp_path):
    check_saving(make_model, features(), tmp_path)


def test_outputs_and_gradients_are_those_of_an_independent_model(tmp_path):
    check_against_numpy(make_model(), "tagger", features(), tmp_path)
