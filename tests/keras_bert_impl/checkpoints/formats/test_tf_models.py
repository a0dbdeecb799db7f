"""Checkpoints of TF Model Garden give here what they give there."""

import itertools
import json
import re
import shutil

import keras
import pytest

from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.models.token_models import BertSpanLabeler, BertTokenClassifier
from tests.support.elsewhere import TF_MODELS, check, outputs_of

THEIRS = outputs_of(TF_MODELS / "outputs.npz", TF_MODELS / "more.npz")
INPUTS = {name: THEIRS[name] for name in ("input_ids", "attention_mask")}
POSITIONS = {"masked_lm_positions": THEIRS["masked_lm_positions"]}


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
                    (("masked_lm_logits", "mlm_logits"), ("next_sentence_logits", "next_sentence")),
                ),
            )
        ),
    ],
)
def test_object_checkpoints_of_tf_model_garden(folder, model_class, wanted):
    positions = POSITIONS if model_class is BertPretrainer else {}
    numbers = {ours: THEIRS[theirs] for ours, theirs in wanted.items()}
    check(model_class, TF_MODELS / folder, {**INPUTS, **positions}, numbers, do_lower_case=True)


@pytest.mark.parametrize(
    ("encoders", "why"),
    [((), "none of its objects is a BERT's encoder"), ("ab", "several of its objects are enc")],
)
def test_a_checkpoint_of_objects_must_have_one_encoder(tmp_path, encoders, why):
    if keras.backend.backend() != "tensorflow":
        pytest.skip("writes a checkpoint with TensorFlow")
    import tensorflow as tf

    shutil.copy(TF_MODELS / "encoder" / "bert_config.json", tmp_path)
    block = tf.train.Checkpoint
    objects = {name: block(_transformer_layers=[block(x=tf.Variable(1))]) for name in encoders}
    tf.train.Checkpoint(step=tf.Variable(1), **objects).write(str(tmp_path / "ckpt"))
    with pytest.raises(UserError, match=why):
        find_model(tmp_path / "ckpt")


def test_a_run_says_the_activation_of_its_head_of_masked_words(tmp_path):
    folder = shutil.copytree(TF_MODELS / "more" / "v2_span", tmp_path / "run")
    params = folder / "params.yaml"
    for said, wanted in (("gelu", "gelu_tanh"), ("relu", "relu")):
        params.write_text(
            re.sub("mlm_activation: .*", f"mlm_activation: {said}", params.read_text())
        )
        config = find_model(folder, do_lower_case=True).config
        assert config.of_masked_lm().hidden_act == wanted
        assert config.hidden_act == "gelu_tanh"


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("type: bert", "its encoder is"),
        ("mlm_activation: gelu", "mlm_activation: "),
        ("", "id2label: "),
    ],
)
def test_parameters_that_refer_to_themselves_many_times_are_one_sentence(tmp_path, place, why):
    """A list of nine lists of nine lists …: written out, a kilobyte becomes gigabytes."""
    folder = shutil.copytree(TF_MODELS / "more" / "v2_span", tmp_path / "run")
    names = "abcdefghij"
    lists = ["a: &a [x, x, x, x, x, x, x, x, x]"] + [
        f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]" for old, new in itertools.pairwise(names)
    ]
    params = folder / "params.yaml"
    text = params.read_text()
    assert place in text
    changed = (
        text.replace(place, f"{place.split(':')[0]}: *j", 1)
        if place
        else f"{text}\nid2label: {{0: *j}}\n"
    )
    params.write_text("\n".join([*lists, changed]))
    with pytest.raises(UserError, match=rf"params\.yaml: .*{why}") as caught:
        find_model(folder, do_lower_case=True)
    assert len(str(caught.value)) < 1000


def test_the_heads_of_the_file_are_those_of_the_configuration(tmp_path):
    folder = shutil.copytree(TF_MODELS / "encoder", tmp_path / "model")
    path = folder / "bert_config.json"
    values = json.loads(path.read_text())
    heads = values["num_attention_heads"]
    path.write_text(json.dumps({**values, "num_attention_heads": heads // 2}))
    with pytest.raises(
        UserError, match=f"has {heads} attention heads, the configuration {heads // 2}"
    ):
        find_model(folder, do_lower_case=True)
