import numpy as np
import pytest

from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.text_settings import TextSettings
from pipelines.fine_tuning.heads import (
    ClassificationHead,
    MultiLabelHead,
    RegressionHead,
    as_label_list,
)
from tests.support.model_folders import WORD_VOCABULARY, tiny_config

LABELS = ClassificationHead({"0": "unacceptable", "1": "acceptable"})
NUMBERS = RegressionHead(0.0, 5.0)
SEVERAL = MultiLabelHead(["rude", "toxic", "other"])


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


@pytest.mark.parametrize("label", ["five", "nan", "5.1"])
def test_what_is_no_number_of_the_range_is_refused(label):
    with pytest.raises(UserError, match=r"is no number from 0 to 5"):
        NUMBERS.encode(label)


def test_any_number_of_labels_becomes_a_0_or_1_each():
    encoded = SEVERAL.encode_all(['["toxic", "rude"]', "[]"])
    assert encoded.tolist() == [[1, 1, 0], [0, 0, 0]]
    assert encoded.dtype == np.int32


def test_each_of_several_labels_has_a_probability_of_its_own():
    logits = np.array([[0.0, np.log(3), -1000.0], [1000.0, -1.0, -1.0]], np.float32)
    np.testing.assert_allclose(SEVERAL.values(logits)[0], [0.5, 0.75, 0.0], atol=1e-7)
    assert SEVERAL.predictions(logits).tolist() == [[1, 1, 0], [1, 0, 0]]
    assert SEVERAL.decode(logits) == [as_label_list(["rude", "toxic"]), as_label_list(["rude"])]


def test_several_labels_are_known_to_transformers_as_such():
    config = SEVERAL.configure(BertConfig(vocab_size=10)).to_hugging_face()
    assert config["problem_type"] == "multi_label_classification"
    assert config["id2label"] == {"0": "rude", "1": "toxic", "2": "other"}


def test_the_model_directory_keeps_what_kind_of_problem_it_is(tmp_path):
    for head in (LABELS, SEVERAL, RegressionHead()):
        started = tiny_config(extra={"architectures": ["BertModel"]})
        config = head.configure(started)
        folder = tmp_path / config.extra["problem_type"]
        write_model_directory(folder, head.build(config).model, TextSettings(WORD_VOCABULARY))
        assert find_model(folder).config.extra["problem_type"] == config.extra["problem_type"]


@pytest.mark.parametrize("label", ["five", "inf"])
def test_without_bounds_any_finite_number_is_a_label(label):
    anything = RegressionHead()
    assert anything.encode("-1e6") == -1e6
    assert anything.decode(np.array([[-123456.5], [1e6], [1e6 + 1]])) == [
        *("-123456.5", "1000000", "1000001"),
    ]
    with pytest.raises(UserError, match="is no finite number"):
        anything.encode(label)
