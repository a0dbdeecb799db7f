import numpy as np
import pytest

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from pipelines.fine_tuning.heads import (
    ClassificationHead,
    MultiLabelHead,
    RegressionHead,
    as_label_list,
)

LABELS = ClassificationHead({"0": "unacceptable", "1": "acceptable"})
NUMBERS = RegressionHead(0.0, 5.0)
SEVERAL = MultiLabelHead(["rude", "toxic", "other"])


def test_an_unknown_label_is_named_with_the_known_ones():
    with pytest.raises(UserError, match="unknown label '2'; it must be one of 0, 1"):
        LABELS.encode("2")


def test_labels_are_classes_and_numbers_stay_within_their_bounds():
    assert (LABELS.encode("1"), LABELS.names) == (1, ("unacceptable", "acceptable"))
    assert LABELS.decode(np.array([[0.1, 2.0], [3.0, -1.0]])) == ["1", "0"]
    assert NUMBERS.encode("3.800") == 3.8
    assert NUMBERS.decode(np.array([[5.25], [1.5]])) == ["5.000", "1.500"]


def test_logits_become_probabilities_even_when_they_are_huge():
    probabilities = LABELS.values(np.array([[0.0, np.log(3)], [1000.0, 0.0]], np.float32))
    np.testing.assert_allclose(probabilities, [[0.25, 0.75], [1.0, 0.0]], atol=1e-7)


def test_the_configuration_learns_the_labels_names():
    config = LABELS.configure(BertConfig(vocab_size=10, extra={"id2label": {"0": "old"}}))
    assert config.extra["id2label"] == {"0": "unacceptable", "1": "acceptable"}
    assert config.extra["label2id"] == {"unacceptable": 0, "acceptable": 1}
    assert config.to_hugging_face()["id2label"] == {"0": "unacceptable", "1": "acceptable"}


@pytest.mark.parametrize("label", ["five", "nan", "5.1"])
def test_what_is_no_number_of_the_range_is_refused(label):
    with pytest.raises(UserError, match=r"is no number from 0 to 5"):
        NUMBERS.encode(label)


def test_each_of_several_labels_has_a_probability_of_its_own():
    logits = np.array([[0.0, np.log(3), -1000.0], [1000.0, -1.0, -1.0]], np.float32)
    np.testing.assert_allclose(SEVERAL.values(logits)[0], [0.5, 0.75, 0.0], atol=1e-7)
    assert SEVERAL.predictions(logits).tolist() == [[1, 1, 0], [1, 0, 0]]
    assert SEVERAL.decode(logits) == [as_label_list(["rude", "toxic"]), as_label_list(["rude"])]


@pytest.mark.parametrize("label", ["five", "inf"])
def test_without_bounds_any_finite_number_is_a_label(label):
    anything = RegressionHead()
    assert anything.encode("-1e6") == -1e6
    assert anything.decode(np.array([[-123456.5], [1e6], [1e6 + 1]])) == [
        *("-123456.5", "1000000", "1000001")
    ]
    with pytest.raises(UserError, match="is no finite number"):
        anything.encode(label)
