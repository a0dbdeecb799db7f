"""Models that other TensorFlow and Keras libraries saved give here what they give there.

The folders in `elsewhere` were made by those libraries; its scripts say how.
"""

import json
import shutil
from pathlib import Path

import h5py
import keras
import numpy as np
import pytest

from keras_bert_impl.checkpoints.convert import ConvertConfig, convert_checkpoint
from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.checkpoints.sentence_modules import read_sentence_settings
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.embedder import BertEmbedder
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.multiple_choice import BertMultipleChoice
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.models.token_models import BertSpanLabeler, BertTokenClassifier

ELSEWHERE = Path(__file__).parent / "elsewhere"
TRANSFORMERS, TF_MODELS = ELSEWHERE / "transformers_tf", ELSEWHERE / "tf_models"
KERAS_HUB = ELSEWHERE / "keras_hub"
EQUAL = 1e-5


def outputs_of(file):
    with np.load(file) as numbers:
        return dict(numbers)


FROM_TRANSFORMERS = outputs_of(TRANSFORMERS / "outputs.npz")
FROM_TF_MODELS = outputs_of(TF_MODELS / "outputs.npz") | outputs_of(TF_MODELS / "more.npz")
FROM_KERAS_HUB = outputs_of(KERAS_HUB / "outputs.npz")


def features(numbers, *names):
    """What a model here is asked, of the inputs that another library was asked."""
    return dict(
        zip(
            ("input_ids", "attention_mask", "token_type_ids"),
            (numbers[name] for name in names),
            strict=False,
        )
    )


TF_INPUTS = features(FROM_TRANSFORMERS, "input_ids", "attention_mask", "token_type_ids")
ALL_POSITIONS = {"masked_lm_positions": np.tile(np.arange(12), (3, 1))}
GARDEN_INPUTS = features(FROM_TF_MODELS, "input_ids", "attention_mask")
GARDEN_MASKED = {"masked_lm_positions": FROM_TF_MODELS["masked_lm_positions"]}
HUB_INPUTS = features(FROM_KERAS_HUB, "token_ids", "padding_mask", "segment_ids")
HUB_MASKED = {"masked_lm_positions": FROM_KERAS_HUB["mask_positions"]}


def check(model_class, folder, inputs, wanted):
    """Compares outputs, named as here, with those of the other library."""
    outputs = model_class.from_pretrained(folder, do_lower_case=True)(inputs)
    for name, numbers in wanted.items():
        ours = np.asarray(outputs[name])
        np.testing.assert_allclose(ours.reshape(numbers.shape), numbers, rtol=0, atol=EQUAL)


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
    positions = ALL_POSITIONS if model_class is BertPretrainer else {}
    numbers = {ours: FROM_TRANSFORMERS[theirs] for ours, theirs in wanted.items()}
    check(model_class, TRANSFORMERS / folder, {**TF_INPUTS, **positions}, numbers)


def test_choices_of_transformers_tensorflow_classes():
    model = BertMultipleChoice.from_pretrained(TRANSFORMERS / "choices", num_choices=2)
    rows = [[0, 2], [1, 1]]  # of the inputs, two choices each
    logits = model({name: array[rows] for name, array in TF_INPUTS.items()})["logits"]
    wanted = FROM_TRANSFORMERS["choices/logits"]
    np.testing.assert_allclose(np.asarray(logits), wanted, rtol=0, atol=EQUAL)


@pytest.mark.parametrize(
    ("folder", "model_class", "wanted"),
    [
        (
            "encoder",
            BertEncoder,
            {
                "sequence_output": "encoder/sequence_output",
                "pooled_output": "encoder/pooled_output",
            },
        ),
        ("pretrainer", BertPretrainer, {"masked_lm_logits": "pretrainer/mlm_logits"}),
        ("classifier", BertClassifier, {"logits": "classifier/logits"}),
        *(
            (f"more/{kind}_{name}", model_class, {o: f"{kind}_{name}/{t}" for o, t in heads})
            for kind in ("v1", "v2")
            for name, model_class, heads in (
                ("span", BertSpanLabeler, (("start_logits", "start"), ("end_logits", "end"))),
                ("tags", BertTokenClassifier, (("logits", "logits"),)),
                ("head_with_pooler", BertClassifier, (("logits", "logits"),)),
                (
                    "pretrainer",
                    BertPretrainer,
                    (
                        ("masked_lm_logits", "mlm_logits"),
                        ("next_sentence_logits", "next_sentence"),
                    ),
                ),
            )
        ),
    ],
)
def test_object_checkpoints_of_tf_model_garden(folder, model_class, wanted):
    positions = GARDEN_MASKED if model_class is BertPretrainer else {}
    numbers = {ours: FROM_TF_MODELS[theirs] for ours, theirs in wanted.items()}
    check(model_class, TF_MODELS / folder, {**GARDEN_INPUTS, **positions}, numbers)


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
    positions = HUB_MASKED if model_class is BertPretrainer else {}
    numbers = {ours: FROM_KERAS_HUB[theirs] for ours, theirs in wanted.items()}
    model = model_class.from_pretrained(KERAS_HUB / folder)  # the preset says the casing itself
    outputs = model({**HUB_INPUTS, **positions})
    for name, array in numbers.items():
        np.testing.assert_allclose(np.asarray(outputs[name]), array, rtol=0, atol=EQUAL)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_text_embedders_of_keras_hub(pooling):
    folder = KERAS_HUB / f"embedder_{pooling}"
    said = read_sentence_settings(folder)
    assert said
    assert said.max_seq_length == 16
    model = BertEmbedder.from_pretrained(folder, pooling=said.pooling, normalize=said.normalize)
    vectors = np.asarray(model(HUB_INPUTS)["embedding"])
    wanted = outputs_of(KERAS_HUB / "embedders.npz")[pooling]
    np.testing.assert_allclose(vectors, wanted, rtol=0, atol=EQUAL)


def test_a_preset_says_its_casing_and_its_length():
    source = find_model(KERAS_HUB / "classifier")
    assert (source.text.do_lower_case, source.text.removes_accents) == (True, False)
    assert source.config.extra["task_specific_params"]["keras_bert_impl"]["max_seq_length"] == 16
    assert source.architecture == "BertForSequenceClassification"


@pytest.mark.parametrize(
    ("path", "architecture"),
    [
        (TF_MODELS / "more" / "v2_tags" / "ckpt-7.index", "BertForTokenClassification"),
        (TF_MODELS / "more" / "v1_span", "BertForQuestionAnswering"),
        (TF_MODELS / "pretrainer", "BertForMaskedLM"),
        (TRANSFORMERS / "tags" / "tf_model.h5", "BertForTokenClassification"),
        (KERAS_HUB / "masked_lm" / "model.weights.h5", "BertForMaskedLM"),
    ],
)
def test_any_file_stands_for_the_model_and_its_head_is_known(path, architecture):
    assert find_model(path, do_lower_case=None, needs_text=False).architecture == architecture


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


def broken(tmp_path, change):
    folder = tmp_path / "broken"
    shutil.copytree(TRANSFORMERS / "classification", folder)
    change(folder / "tf_model.h5")
    return folder


def in_place_of_a_bias(make):
    """Replaces one tensor of a file by what `make` puts there."""

    def change(path):
        with h5py.File(path, "r+") as file:
            name = "classifier/tf_bert_for_sequence_classification/classifier/bias:0"
            del file[name]
            make(file, name, path)

    return change


def external_link(file, name, path):
    with h5py.File(path.parent / "other.h5", "w") as other:
        other["x"] = np.zeros(3, "float32")
    file[name] = h5py.ExternalLink("other.h5", "x")


def soft_link(file, name, path):
    del path
    file["x"] = np.zeros(3, "float32")
    file[name] = h5py.SoftLink("/x")


def external_storage(file, name, path):
    (path.parent / "secret").write_bytes(b"0123456789ab")
    place = [(str(path.parent / "secret"), 0, 12)]
    file.create_dataset(name, (3,), "float32", external=place)


def virtual(file, name, path):
    with h5py.File(path.parent / "other.h5", "w") as other:
        other["x"] = np.zeros(3, "float32")
    layout = h5py.VirtualLayout((3,), "float32")
    layout[:] = h5py.VirtualSource("other.h5", "x", (3,))
    file.create_virtual_dataset(name, layout)


def unpacks_to_gigabytes(file, name, path):
    del path
    file.create_dataset(name, (1 << 31,), "float32", chunks=(1 << 20,), compression="gzip")


def endless(file, name, path):
    del path
    file[name] = np.zeros(3, "float32")
    file["bert/loop"] = file["bert"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (in_place_of_a_bias(external_link), "a link instead of a tensor"),
        (in_place_of_a_bias(soft_link), "a link instead of a tensor"),
        (in_place_of_a_bias(external_storage), "a tensor that lies in another file"),
        (in_place_of_a_bias(virtual), "a tensor that lies in another file"),
        (in_place_of_a_bias(unpacks_to_gigabytes), "a tensor that is compressed or cut off"),
        (in_place_of_a_bias(endless), "nested too deep"),
        (lambda path: path.write_bytes(path.read_bytes()[:50_000]), "truncated file"),
        (lambda path: path.write_bytes(b"no HDF5"), "file signature not found"),
    ],
)
def test_a_file_of_weights_that_leads_elsewhere_is_refused(tmp_path, change, why):
    folder = broken(tmp_path, change)
    with pytest.raises(UserError, match=rf"tf_model\.h5: cannot be read as an HDF5 .*{why}"):
        BertClassifier.from_pretrained(folder)


def test_a_part_that_the_index_names_and_no_file_holds_is_missed(tmp_path):
    shutil.copytree(TRANSFORMERS / "parts", tmp_path / "parts")
    index = tmp_path / "parts" / "tf_model.h5.index.json"
    values = json.loads(index.read_text())
    values["weight_map"]["tf_bert/bert/encoder/layer_._9/output/dense/bias:0"] = (
        "tf_model-00001-of-00002.h5"
    )
    index.write_text(json.dumps(values))
    with pytest.raises(UserError, match=r"lists tensor 'bert\.encoder\.layer\.9.*which no part"):
        find_model(tmp_path / "parts")


@pytest.mark.parametrize(
    ("source", "file", "change", "why"),
    [
        (
            KERAS_HUB / "backbone",
            "config.json",
            {"class_name": "RobertaBackbone"},
            "is a preset of RobertaBackbone; only BertBackbone",
        ),
        (
            KERAS_HUB / "classifier",
            "task.json",
            {"class_name": "BertOther"},
            "is a preset of BertOther",
        ),
        (
            TRANSFORMERS / "encoder",
            "config.json",
            {"model_type": "albert"},
            "model_type is 'albert'",
        ),
        (
            TRANSFORMERS / "encoder",
            "config.json",
            {"hidden_size": 64},
            r"has the shape \[70, 32\], but the configuration says \[70, 64\]",
        ),
        (
            TF_MODELS / "encoder",
            "bert_config.json",
            {"num_hidden_layers": 3},
            "lacks 16 of the encoder's weights",
        ),
    ],
)
def test_another_architecture_or_other_sizes_are_one_sentence(tmp_path, source, file, change, why):
    shutil.copytree(source, tmp_path / "model")
    path = tmp_path / "model" / file
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(UserError, match=why):
        find_model(tmp_path / "model", do_lower_case=None, needs_text=False)


def test_a_checkpoint_of_objects_without_an_encoder_is_refused(tmp_path):
    if keras.backend.backend() != "tensorflow":
        pytest.skip("writes a checkpoint with TensorFlow")
    import tensorflow as tf

    shutil.copy(TF_MODELS / "encoder" / "bert_config.json", tmp_path)
    tf.train.Checkpoint(step=tf.Variable(1)).write(str(tmp_path / "ckpt"))
    with pytest.raises(UserError, match="none of its objects is a BERT's encoder"):
        find_model(tmp_path / "ckpt")
