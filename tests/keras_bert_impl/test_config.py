import copy
import json
import pickle

import pytest

from keras_bert_impl.config import ACTIVATIONS, BertConfig, named_config
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.encoder import BertEncoder

# Published counts: encoder with pooler.
PARAMETERS = {
    ("tiny", "uncased"): 4_385_920,
    ("mini", "uncased"): 11_170_560,
    ("small", "uncased"): 28_763_648,
    ("medium", "uncased"): 41_373_184,
    ("base", "uncased"): 109_482_240,
    ("large", "uncased"): 335_141_888,
    ("base", "cased"): 108_310_272,
    ("base", "multilingual"): 177_853_440,
}


def count_parameters(config):
    """How many weights an encoder with pooler has, from its sizes alone."""
    h, wide = config.hidden_size, config.intermediate_size
    tables = (config.vocab_size + config.max_position_embeddings + config.type_vocab_size) * h
    block = 4 * (h * h + h) + 2 * h * wide + wide + h + 4 * h
    return tables + 2 * h + config.num_hidden_layers * block + h * h + h


@pytest.mark.parametrize(("size", "vocabulary"), PARAMETERS)
def test_a_named_size_has_the_published_number_of_parameters(size, vocabulary):
    config = named_config(size, vocabulary)
    assert count_parameters(config) == PARAMETERS[size, vocabulary]


def test_a_built_encoder_has_as_many_parameters_as_its_sizes_say():
    config = named_config("tiny", 99).replace(num_hidden_layers=2)  # all of them take gigabytes
    assert BertEncoder(config).count_params() == count_parameters(config)


def test_gelu_means_the_tanh_form_to_google_and_the_erf_form_to_hugging_face():
    google = BertConfig.from_google({"vocab_size": 9, "hidden_act": "gelu"})
    hugging_face = BertConfig.from_hugging_face({"vocab_size": 9, "hidden_act": "gelu"})
    assert (google.hidden_act, hugging_face.hidden_act) == ("gelu_tanh", "gelu_erf")
    assert google.to_google()["hidden_act"] == "gelu"
    assert google.to_hugging_face()["hidden_act"] == "gelu_new"
    assert hugging_face.to_hugging_face()["hidden_act"] == "gelu"
    assert hugging_face.to_google()["hidden_act"] == "gelu_erf"


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_both_forms_of_the_file_keep_everything(activation):
    config = BertConfig(
        vocab_size=77, hidden_act=activation, causal=True, layer_norm_eps=1e-5, extra={"mine": [1]}
    )
    for again in (
        BertConfig.from_google(config.to_google()),
        BertConfig.from_hugging_face(config.to_hugging_face()),
    ):
        assert again == config
        assert again.extra["mine"] == [1]


def test_attention_from_right_to_left_is_kept_and_no_bert_for_others():
    config = BertConfig(vocab_size=77, anticausal=True)
    written = config.to_hugging_face()
    assert written["model_type"] == "keras_bert_impl"  # transformers refuses what it does not know
    assert BertConfig.from_hugging_face(written) == config
    assert BertConfig.from_google(config.to_google()) == config
    assert not {"causal", "anticausal"} & set(BertConfig(vocab_size=77).to_google())
    with pytest.raises(UserError, match="causal and anticausal are both true"):
        config.replace(causal=True)


@pytest.mark.parametrize(
    ("architecture", "pooling", "model_type"),
    [
        ("BertForSequenceClassification", "mean", "keras_bert_impl"),
        ("BertForSequenceClassification", "pooler", "bert"),
        ("BertForMaskedLM", "mean", "bert"),  # which reads none
    ],
)
def test_another_pooling_is_no_bert_for_others(architecture, pooling, model_type):
    extra = {"architectures": [architecture], "classifier_pooling": pooling}
    config = BertConfig(vocab_size=77, extra=extra)
    assert config.to_hugging_face()["model_type"] == model_type
    assert ("the pooling of its classifier" in config.unknown_to_google()) == (pooling == "mean")


def test_a_file_of_hugging_face_is_read_as_theirs_under_any_name(tmp_path):
    written = BertConfig(vocab_size=9, hidden_act="gelu_erf", causal=True).to_hugging_face()
    path = tmp_path / "bert_config.json"
    path.write_text(json.dumps(written))
    config = BertConfig.from_google_file(path)
    assert (config.hidden_act, config.causal) == ("gelu_erf", True)
    path.write_text(json.dumps({**written, "position_embedding_type": "relative_key"}))
    with pytest.raises(UserError, match=r"bert_config\.json: position_embedding_type is 'relative"):
        BertConfig.from_google_file(path)


def test_what_is_no_truth_is_no_decoder():
    with pytest.raises(UserError, match=r"config\.json: is_decoder is 'false'; it must be true or"):
        BertConfig.from_hugging_face({"vocab_size": 9, "is_decoder": "false"})


def test_a_google_file_is_read_and_written_back_as_it_was(tmp_path):
    content = {
        "vocab_size": 50,
        "hidden_act": "gelu",
        "directionality": "bidi",
        "pooler_fc_size": 768,
    }
    path = tmp_path / "bert_config.json"
    path.write_text(json.dumps(content))
    written = BertConfig.from_google_file(path).to_google()
    assert {name: written[name] for name in content} == content


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"hidden_size": 10, "num_attention_heads": 3}, "not a multiple"),
        ({"vocab_size": 10**23}, "vocab_size is 10{23}; it must be a whole number"),
        ({"hidden_size": 3 << 24}, "weights, more than any machine holds; lower hidden_size"),
        ({"num_hidden_layers": 10**9, "hidden_size": 12}, "it must be 1 to 10000"),
        ({"hidden_dropout_prob": float("nan")}, "hidden_dropout_prob is nan"),
        ({"causal": "yes"}, "causal is 'yes'; it must be true or false"),
        ({"vocab_size": 0}, "vocab_size is 0"),
        ({"hidden_act": "swish"}, "hidden_act is 'swish'"),
        ({"vocab_size": None}, "has no vocab_size"),
    ],
)
def test_values_that_no_model_can_have_are_refused_in_one_sentence(values, words):
    with pytest.raises(UserError, match=words) as caught:
        BertConfig.from_google({"vocab_size": 9, **values}, "my.json")
    assert str(caught.value).startswith("my.json: ")


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda config: pickle.loads(pickle.dumps(config))]
)
def test_a_configuration_can_be_copied_and_pickled(again):
    config = BertConfig(vocab_size=9, hidden_act="relu", extra={"id2label": {"0": "no"}})
    made = again(config)
    assert made == config
    assert made.extra == config.extra
    with pytest.raises(TypeError):
        made.extra["id2label"] = {}
