"""What transformers' TensorFlow classes saved gives here what it gives there."""

import json
import shutil

import h5py
import numpy as np
import pytest

from keras_bert_impl.checkpoints.formats.safetensors_file import (
    read_shapes,
    read_tensor,
    write_safetensors,
)
from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.multiple_choice import BertMultipleChoice
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.models.token_models import BertSpanLabeler, BertTokenClassifier
from tests.support.elsewhere import TRANSFORMERS, check, outputs_of

THEIRS = outputs_of(TRANSFORMERS / "outputs.npz")
INPUTS = {name: THEIRS[name] for name in ("input_ids", "attention_mask", "token_type_ids")}
POSITIONS = {"masked_lm_positions": np.tile(np.arange(12), (3, 1))}


@pytest.mark.parametrize(
    ("folder", "model_class", "wanted"),
    [
        (
            "encoder",
            BertEncoder,
            {
                "sequence_output": "encoder/last_hidden_state",
                "pooled_output": "encoder/pooler_output",
            },
        ),
        ("classification", BertClassifier, {"logits": "classification/logits"}),
        ("regression", BertClassifier, {"logits": "regression/logits"}),
        ("tags", BertTokenClassifier, {"logits": "tags/logits"}),
        ("parts", BertTokenClassifier, {"logits": "tags/logits"}),
        ("safetensors", BertTokenClassifier, {"logits": "tags/logits"}),
        (
            "questions",
            BertSpanLabeler,
            {"start_logits": "questions/start_logits", "end_logits": "questions/end_logits"},
        ),
        (
            "pretraining",
            BertPretrainer,
            {
                "masked_lm_logits": "pretraining/prediction_logits",
                "next_sentence_logits": "pretraining/seq_relationship_logits",
            },
        ),
        ("masked_lm", BertPretrainer, {"masked_lm_logits": "masked_lm/logits"}),
        ("next_sentence", BertPretrainer, {"next_sentence_logits": "next_sentence/logits"}),
    ],
)
def test_what_transformers_tensorflow_classes_saved(folder, model_class, wanted):
    positions = POSITIONS if model_class is BertPretrainer else {}
    numbers = {ours: THEIRS[theirs] for ours, theirs in wanted.items()}
    check(model_class, TRANSFORMERS / folder, {**INPUTS, **positions}, numbers)


def test_a_tagger_without_pooler_lacks_nothing(caplog):
    BertTokenClassifier.from_pretrained(TRANSFORMERS / "tags")
    assert "start at random" not in caplog.text


def test_choices_of_transformers_tensorflow_classes():
    model = BertMultipleChoice.from_pretrained(TRANSFORMERS / "choices", num_choices=2)
    rows = [[0, 2], [1, 1]]  # of the inputs, two choices each
    logits = model({name: array[rows] for name, array in INPUTS.items()})["logits"]
    wanted = THEIRS["choices/logits"]
    np.testing.assert_allclose(np.asarray(logits), wanted, rtol=0, atol=1e-5)


def test_a_part_that_the_index_names_and_no_file_holds_is_missed(tmp_path):
    shutil.copytree(TRANSFORMERS / "parts", tmp_path / "parts")
    index = tmp_path / "parts" / "tf_model.h5.index.json"
    values = json.loads(index.read_text())
    values["weight_map"]["tf_bert/bert/encoder/layer_._9/output/dense/bias:0"] = (
        "tf_model-00001-of-00002.h5"
    )
    index.write_text(json.dumps(values))
    with pytest.raises(UserError, match=r"lists tensor 'bert\.encoder\.layer\.9.*which no shard"):
        find_model(tmp_path / "parts")


def test_of_two_encoders_none_is_taken_by_chance(tmp_path):
    folder = shutil.copytree(TRANSFORMERS / "encoder", tmp_path / "model")
    with h5py.File(folder / "tf_model.h5", "r+") as file:
        file.copy("bert", "other")
    with pytest.raises(
        UserError, match=r"holds several encoders \('bert/tf_bert_model/bert/', 'oth"
    ):
        find_model(folder)


def test_safetensors_of_tensorflow_in_parts_open(tmp_path):
    folder = shutil.copytree(TRANSFORMERS / "safetensors", tmp_path / "model")
    whole = folder / "model.safetensors"
    tensors = {name: read_tensor(whole, name) for name in read_shapes(whole)}
    whole.unlink()
    names, weight_map = sorted(tensors), {}
    for number, part in enumerate((names[::2], names[1::2]), start=1):
        file = f"model-0000{number}-of-00002.safetensors"
        write_safetensors(folder / file, {name: tensors[name] for name in part})
        weight_map |= {f"tf_bert_for_token_classification_3/{name}": file for name in part}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    check(BertTokenClassifier, folder, INPUTS, {"logits": THEIRS["tags/logits"]})
