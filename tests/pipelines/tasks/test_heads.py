import numpy as np
import pytest

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from pipelines.tasks.heads import ClassificationHead, RegressionHead

LABELS = ClassificationHead({"0": "unacceptable", "1": "acceptable"})
NUMBERS = RegressionHead(0.0, 5.0)


def test_labels_become_classes_in_their_order():
    encoded = LABELS.encode_all(["1", "0", "1"])
    assert encoded.tolist() == [1, 0, 1]
    assert encoded.dtype == np.int32


def test_an_unknown_label_is_named_with_the_known_ones():
    with pytest.raises(UserError, match="unknown label '2'; it must be '0' or '1'"):
        LABELS.encode("2")


def test_logits_become_probabilities_even_when_they_are_huge():
    probabilities = LABELS.values(np.array([[0.0, np.log(3)], [1000.0, 0.0]], np.float32))
    np.testing.assert_allclose(probabilities, [[0.25, 0.75], [1.0, 0.0]], atol=1e-7)


def test_the_configuration_learns_the_labels_names():
    config = LABELS.configure(BertConfig(vocab_size=10, extra={"id2label": {"0": "old"}}))
    assert config.extra["id2label"] == {"0": "unacceptable", "1": "acceptable"}
    assert config.extra["label2id"] == {"unacceptable": 0, "acceptable": 1}
    assert config.to_hugging_face()["id2label"] == {"0": "unacceptable", "1": "acceptable"}


def test_numbers_are_read_as_they_stand():
    encoded = NUMBERS.encode_all(["5.000", "0", "3.8"])
    np.testing.assert_array_equal(encoded, np.array([5.0, 0.0, 3.8], np.float32))


@pytest.mark.parametrize("label", ["five", "nan", "5.1", "-0.1", "inf", ""])
def test_what_is_no_number_of_the_range_is_refused(label):
    with pytest.raises(UserError, match=r"is no number from 0 to 5"):
        NUMBERS.encode(label)


def test_answers_stay_in_the_range_of_the_labels():
    logits = np.array([[5.5], [-0.2], [2.34567]], np.float32)
    assert NUMBERS.decode(logits) == ["5.000", "0.000", "2.346"]


def test_a_regression_has_one_label_by_which_transformers_knows_it():
    config = NUMBERS.configure(BertConfig(vocab_size=10))
    assert config.to_hugging_face()["id2label"] == {"0": "score"}
