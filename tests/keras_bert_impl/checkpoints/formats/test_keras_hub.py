"""Presets of KerasHub give here what they give there, and come back as they were."""

import dataclasses
import json
import shutil

import h5py
import ml_dtypes
import numpy as np
import pytest

from keras_bert_impl.checkpoints.convert import ConvertConfig, convert_checkpoint, read_portable
from keras_bert_impl.checkpoints.formats.keras_hub import write_preset
from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.checkpoints.sentence_modules import read_sentence_settings
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.embedder import BertEmbedder
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.tokenization.added_tokens import AddedToken
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.elsewhere import KERAS_HUB, TRANSFORMERS, check, outputs_of
from tests.support.tiny_bert import TINY, VOCABULARY

THEIRS = outputs_of(KERAS_HUB / "outputs.npz")
INPUTS = {
    "input_ids": THEIRS["token_ids"],
    "attention_mask": THEIRS["padding_mask"],
    "token_type_ids": THEIRS["segment_ids"],
}
TEXT = TextSettings(VOCABULARY)
POSITIONS = {"masked_lm_positions": THEIRS["mask_positions"]}


@pytest.mark.parametrize(
    ("folder", "model_class", "wanted"),
    [
        (
            "backbone",
            BertEncoder,
            {
                "sequence_output": "backbone/sequence_output",
                "pooled_output": "backbone/pooled_output",
            },
        ),
        ("classifier", BertClassifier, {"logits": "classifier/logits"}),
        ("masked_lm", BertPretrainer, {"masked_lm_logits": "masked_lm/scores"}),
    ],
)
def test_presets_of_keras_hub(folder, model_class, wanted):
    positions = POSITIONS if model_class is BertPretrainer else {}
    numbers = {ours: THEIRS[theirs] for ours, theirs in wanted.items()}
    check(model_class, KERAS_HUB / folder, {**INPUTS, **positions}, numbers)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_text_embedders_of_keras_hub(pooling):
    folder = KERAS_HUB / f"embedder_{pooling}"
    said = read_sentence_settings(folder)
    assert said
    assert said.max_seq_length == 16
    model = BertEmbedder.from_pretrained(folder, pooling=said.pooling, normalize=said.normalize)
    vectors = np.asarray(model(INPUTS)["embedding"])
    wanted = outputs_of(KERAS_HUB / "embedders.npz")[pooling]
    np.testing.assert_allclose(vectors, wanted, rtol=0, atol=1e-5)


def test_a_preset_says_its_casing_and_its_length():
    source = find_model(KERAS_HUB / "classifier")
    assert (source.text.do_lower_case, source.text.removes_accents) == (True, False)
    assert source.config.extra["task_specific_params"]["keras_bert_impl"]["max_seq_length"] == 16
    assert source.architecture == "BertForSequenceClassification"


class TestConversion:
    """`convert_checkpoint` from these libraries and to KerasHub."""

    @staticmethod
    def convert(source, output, form):
        config = ConvertConfig(
            input=str(source), output=str(output), output_format=form, do_lower_case=None
        )
        return convert_checkpoint(config)

    @pytest.mark.parametrize("folder", ["backbone", "classifier", "masked_lm"])
    def test_a_preset_comes_back_bit_by_bit(self, tmp_path, folder):
        self.convert(KERAS_HUB / folder, tmp_path / "here", "hugging_face")
        self.convert(tmp_path / "here", tmp_path / "back", "keras_hub")
        for name in ("model.weights.h5", "task.weights.h5"):
            theirs, ours = KERAS_HUB / folder / name, tmp_path / "back" / name
            assert theirs.exists() == ours.exists()
            if theirs.exists():
                assert_same_numbers(theirs, ours)
        vocabulary = "assets/tokenizer/vocabulary.txt"
        assert (tmp_path / "back" / vocabulary).read_text().split() == (
            KERAS_HUB / folder / vocabulary
        ).read_text().split()

    def test_what_keras_hub_has_no_head_for_is_refused(self, tmp_path):
        with pytest.raises(UserError, match=r"out: KerasHub's BERT has no place for tagger"):
            self.convert(TRANSFORMERS / "tags", tmp_path / "out", "keras_hub")
        assert not (tmp_path / "out").exists()

    def test_another_activation_is_said(self, tmp_path, caplog):
        self.convert(TRANSFORMERS / "classification", tmp_path / "out", "keras_hub")
        assert "KerasHub computes the tanh form of GELU" in caplog.text


def assert_same_numbers(theirs, ours):
    with h5py.File(theirs) as left, h5py.File(ours) as right:

        def compare(name, one):
            if isinstance(one, h5py.Dataset) and not name.startswith("optimizer"):
                np.testing.assert_array_equal(one[()], right[name][()], strict=True)

        left.visititems(compare)


def written(folder, text=TEXT, dtype="float32", **extra):
    """A classifier written as a preset, and its weights."""
    config = TINY.replace(extra=extra)
    model = BertClassifier(config, num_labels=3)
    weights = {one.path: np.asarray(one).astype(dtype) for one in model.weights}
    write_preset(folder, weights, config, text, 16)
    return weights


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
def test_half_precision_comes_back(tmp_path, dtype):
    weights = written(tmp_path / "preset", dtype=dtype)
    again = read_portable(tmp_path / "preset").weights
    for name, weight in weights.items():
        assert again[name].dtype == dtype
        np.testing.assert_array_equal(again[name], weight)


def test_a_question_for_each_label_comes_back(tmp_path):
    written(tmp_path / "preset", problem_type="multi_label_classification")
    assert find_model(tmp_path / "preset").is_multi_label


def test_another_pooling_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"no place for a classifier over mean; give `output_for"):
        written(tmp_path / "preset", classifier_pooling="mean")


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({"longest_word": 100}, None),
        ({"longest_word": 50, "unicode_form": "nfc"}, "max_input_chars_per_word, unicode_form:"),
        ({"added": (AddedToken("word1", 7),)}, "no place for added_tokens_decoder: some"),
    ],
)
def test_what_is_lost_of_the_tokenizer_is_said(tmp_path, caplog, changes, lost):
    written(tmp_path / "preset", dataclasses.replace(TEXT, **changes))
    assert lost in caplog.text if lost else "tokenizer" not in caplog.text


@pytest.mark.parametrize(
    ("activation", "several"), [("linear", False), ("softmax", False), ("sigmoid", True)]
)
def test_the_activation_of_a_classifier_says_how_labels_are_meant(tmp_path, activation, several):
    assert find_model(with_activation(tmp_path, activation)).is_multi_label == several


def test_an_activation_of_no_classifier_here_is_refused(tmp_path):
    with pytest.raises(UserError, match="activation is 'relu', which no classifier here has"):
        find_model(with_activation(tmp_path, "relu"))


def with_activation(tmp_path, activation):
    folder = shutil.copytree(KERAS_HUB / "classifier", tmp_path / "preset")
    task = json.loads((folder / "task.json").read_text())
    task["config"]["activation"] = activation
    (folder / "task.json").write_text(json.dumps(task))
    return folder
