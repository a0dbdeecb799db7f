import json

import ml_dtypes
import numpy as np
import pytest

from keras_bert_impl.checkpoints.model_directory import (
    heads_of,
    write_model_directory,
    write_tensors_directory,
)
from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.multiple_choice import BertMultipleChoice
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.models.token_models import BertSpanLabeler, BertTokenClassifier
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from tests.support.tiny_bert import TINY, VOCABULARY
from tests.support.written_weights import tensors_of

MODELS = {
    "BertModel": BertEncoder,
    "BertForPreTraining": BertPretrainer,
    "BertForSequenceClassification": lambda config: BertClassifier(config, num_labels=3),
    "BertForTokenClassification": lambda config: BertTokenClassifier(config, num_labels=3),
    "BertForQuestionAnswering": BertSpanLabeler,
    "BertForMultipleChoice": lambda config: BertMultipleChoice(config, num_choices=2),
}


def written(folder, model, text=TextSettings(VOCABULARY)):  # noqa: B008
    write_model_directory(folder, model, text)
    return json.loads((folder / "config.json").read_text())


@pytest.mark.parametrize("architecture", MODELS)
def test_the_heads_give_the_architecture_its_name(tmp_path, architecture):
    config = written(tmp_path / "m", MODELS[architecture](TINY))
    assert config["architectures"] == [architecture]
    assert len(config.get("id2label", ())) == 3 * ("oken" in architecture or "Seq" in architecture)
    names = tensors_of(tmp_path / "m")
    assert any(name.startswith("bert.") for name in names) == (architecture != "BertModel")


@pytest.mark.parametrize(
    "text",
    [
        TextSettings(VOCABULARY, lower, accents)
        for lower in (True, False)
        for accents in (None, True, False)
    ],
)
def test_text_settings_come_back(tmp_path, text):
    written(tmp_path / "m", BertEncoder(TINY), text)
    assert find_model(tmp_path / "m").text == text


def test_the_tokenizer_is_described_for_transformers(tmp_path):
    written(tmp_path / "m", BertEncoder(TINY))
    said = json.loads((tmp_path / "m" / "tokenizer_config.json").read_text())
    assert said["tokenizer_class"] == "BertTokenizer"
    assert said["model_max_length"] == TINY.max_position_embeddings
    assert (said["mask_token"], said["tokenize_chinese_chars"]) == ("[MASK]", True)


def test_the_id_of_pad_is_written_wherever_the_vocabulary_has_it(tmp_path):
    first, second, *others = VOCABULARY.tokens
    text = TextSettings(Vocabulary([second, first, *others]))
    model = BertEncoder(TINY.replace(extra={"pad_token_id": 0}))
    assert written(tmp_path / "m", BertEncoder(TINY))["pad_token_id"] == 0
    assert written(tmp_path / "m", model, text)["pad_token_id"] == 1
    ids = np.array([[2, 5, 3, 1]])
    outputs = [
        BertEncoder.from_pretrained(tmp_path / "m")({"input_ids": ids, **mask})["pooled_output"]
        for mask in ({}, {"input_mask": np.array([[1, 1, 1, 0]])})
    ]
    np.testing.assert_array_equal(*outputs)


def test_names_of_labels_are_written_if_there_are_as_many(tmp_path):
    named = TINY.replace(extra={"id2label": {"0": "a", "1": "b", "2": "c"}})
    config = written(tmp_path / "m", BertClassifier(named, num_labels=3))
    assert config["id2label"] == {"0": "a", "1": "b", "2": "c"}
    config = written(tmp_path / "n", BertClassifier(named, num_labels=2))
    assert config["id2label"] == {"0": "LABEL_0", "1": "LABEL_1"}


def test_the_problem_of_labels_that_are_gone_is_not_written(tmp_path):
    extra = {"id2label": {"0": "a", "1": "b", "2": "c"}, "problem_type": "regression"}
    extra["architectures"] = ["BertForSequenceClassification"]
    named = TINY.replace(extra=extra)
    config = written(tmp_path / "m", BertClassifier(named, num_labels=3))
    assert config["problem_type"] == "regression"
    assert "problem_type" not in written(tmp_path / "n", BertClassifier(named, num_labels=2))


def test_arrays_keep_their_type(tmp_path):
    model = BertEncoder(TINY)
    weights = {v.path: np.asarray(v).astype(ml_dtypes.bfloat16) for v in model.weights}
    write_tensors_directory(tmp_path / "m", weights, TINY, TextSettings(VOCABULARY))
    tensors = tensors_of(tmp_path / "m").values()
    assert {str(array.dtype) for array in tensors} == {"bfloat16"}
    assert json.loads((tmp_path / "m" / "config.json").read_text())["dtype"] == "bfloat16"


def test_a_vocabulary_that_the_model_has_no_rows_for_is_refused(tmp_path):
    large = Vocabulary([*VOCABULARY.tokens, "extra"])
    with pytest.raises(UserError, match="has 31 tokens, but the model only knows 30"):
        written(tmp_path / "m", BertEncoder(TINY), TextSettings(large))
    assert not (tmp_path / "m").exists()


def test_the_same_model_is_written_as_the_same_bytes(tmp_path):
    model = BertPretrainer(TINY)
    for name in ("m", "n"):
        written(tmp_path / name, model)
    for file in (tmp_path / "m").iterdir():
        assert file.read_bytes() == (tmp_path / "n" / file.name).read_bytes()


def test_heads_stand_in_a_fixed_order():
    paths = ["span/dense/bias", "masked_lm/output_bias", "pooler/dense/bias", "layer_0/output/bias"]
    assert heads_of(paths) == heads_of(paths[::-1]) == ("masked_lm", "span")
