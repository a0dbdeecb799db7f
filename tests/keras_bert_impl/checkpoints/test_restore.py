import shutil

import ml_dtypes
import numpy as np
import pytest

from keras_bert_impl.checkpoints.formats.google_tf1 import write_google_checkpoint
from keras_bert_impl.checkpoints.model_source import find_model
from keras_bert_impl.checkpoints.names import all_names
from keras_bert_impl.checkpoints.restore import (
    _BLOCKS,
    check_sizes,
    open_source,
    refuse_untrained,
    restore,
    restore_merged,
)
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.adapters import AdapterConfig, add_adapters
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.models.multiple_choice import BertMultipleChoice
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.models.token_models import BertSpanLabeler, BertTokenClassifier
from tests.support.model_folders import write_any
from tests.support.tiny_bert import GOLDEN, TINY, VOCABULARY, golden_config, scatter_weights
from tests.support.written_weights import assert_same_weights, restored, rewrite


def test_a_model_directory_is_restored_bit_by_bit(pretrained):
    model, folder = pretrained
    again, report = restored(folder)
    assert_same_weights(model, again)
    assert (len(report.loaded), report.new, report.ignored) == (46, (), ())


def test_the_original_s_checkpoint_is_restored_whole():
    model = BertPretrainer(golden_config())
    report = restore(model, GOLDEN / "pretrain" / "init" / "bert_model.ckpt")
    assert (len(report.loaded), report.new, report.ignored) == (46, (), ())


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_other_types_are_read(pretrained, dtype):
    model, folder = pretrained
    rewrite(folder, lambda t: {name: array.astype(dtype) for name, array in t.items()})
    again, _ = restored(folder)
    for one, other in zip(model.weights, again.weights, strict=True):
        assert np.array_equal(np.array(one).astype(dtype).astype(np.float32), other)


@pytest.mark.parametrize("dtype", [np.complex64, object])
def test_tensors_of_no_plain_floats_are_refused(tmp_path, dtype):
    model = scatter_weights(BertEncoder(TINY))
    weights = {weight.path: np.array(weight) for weight in model.weights}
    variables = {row.google: weights[row.ours] for row in all_names(2)}
    name = "bert/pooler/dense/bias"
    variables[name] = np.full(16, b"text" if dtype is object else 1j, dtype)
    write_google_checkpoint(tmp_path / "model.ckpt", variables)
    with pytest.raises(UserError, match=rf"{name} holds {np.dtype(dtype)}; only float16, bfl"):
        restore(model, tmp_path / "model.ckpt")


def test_heads_that_are_missing_are_new_and_others_are_listed(pretrained):
    _, folder = pretrained
    classifier = BertClassifier(TINY, num_labels=3)
    report = restore(classifier, folder)
    assert report.new == ("classifier/dense/bias", "classifier/dense/kernel")
    assert [name for name, _ in report.ignored] == sorted(
        row.hugging_face for row in all_names(2, ("masked_lm", "next_sentence"))[39:]
    )
    table = report.table()
    assert "newly initialised  2  classifier/dense/bias, classifier/dense/kernel" in table
    assert len(table.splitlines()) == 4


@pytest.mark.parametrize(
    ("build", "lost"),
    [
        (lambda: BertClassifier(TINY, 3), "pooler"),
        (lambda: BertClassifier(TINY, 3, pooling="last"), "pooler"),
        (lambda: BertClassifier(TINY, 3), "classifier.bias"),
        (lambda: BertMultipleChoice(TINY, 2), "pooler"),
        (lambda: BertTokenClassifier(TINY, 3), "classifier.bias"),
    ],
)
def test_weights_that_a_head_reads_must_be_there(tmp_path, build, lost):
    folder = write_any(tmp_path / "model", build(), VOCABULARY)
    rewrite(folder, lambda t: {name: array for name, array in t.items() if lost not in name})
    model = build()
    with pytest.raises(UserError, match=r"no trained head for x \(its .* is missing\); name one"):
        refuse_untrained(model, restore(model, folder), "head for x", "name one")


@pytest.mark.parametrize(
    "build",
    [
        lambda: BertClassifier(TINY, 3, pooling="mean"),
        lambda: BertTokenClassifier(TINY, 3),
        lambda: BertSpanLabeler(TINY),
        lambda: BertEncoder(TINY),
        lambda: BertPretrainer(TINY),
    ],
)
def test_a_pooler_that_no_head_reads_may_be_missing(tmp_path, build):
    folder = write_any(tmp_path / "model", build(), VOCABULARY)
    rewrite(folder, lambda t: {name: array for name, array in t.items() if "pooler" not in name})
    model = build()
    refuse_untrained(model, restore(model, folder))


def test_a_missing_encoder_weight_is_an_error(pretrained):
    _, folder = pretrained
    rewrite(
        folder,
        lambda t: {n: a for n, a in t.items() if n != "bert.encoder.layer.1.output.dense.bias"},
    )
    with pytest.raises(UserError, match=r"lacks 1 of the encoder's weights.*layer_1/output/bias"):
        restored(folder)


@pytest.mark.parametrize("more", ["2.output.dense.bias", "1.attention.self.query.lora_A.weight"])
def test_what_no_block_reads_is_an_error(pretrained, more):
    _, folder = pretrained
    rewrite(folder, lambda t: {**t, f"bert.encoder.layer.{more}": np.zeros(16, "float32")})
    with pytest.raises(UserError, match=rf"holds bert.encoder.layer.{more}, which no block of"):
        find_model(folder)


@pytest.mark.parametrize("more", ["teacher.encoder.layer.2.output.bias", "encoder.layers.x"])
def test_the_blocks_of_an_encoder_that_is_not_meant_are_nobodys(pretrained, more):
    _, folder = pretrained
    rewrite(folder, lambda t: {**t, more: np.zeros(16)})
    find_model(folder)


def test_layers_that_keras_numbers_are_no_blocks():
    """In them lie whole encoders, their poolers and the slots of optimizers."""
    table = "encoder/layer_with_weights-0/embeddings/.ATTRIBUTES/VARIABLE_VALUE"
    assert [*map(bool, map(_BLOCKS.match, (table, "bert/encoder/layer_0/x")))] == [False, True]


def test_half_a_head_is_an_error(pretrained):
    _, folder = pretrained
    lost = "cls.seq_relationship.bias"
    rewrite(folder, lambda t: {name: array for name, array in t.items() if name != lost})
    with pytest.raises(UserError, match="holds a head without its next_sentence/dense/bias; down"):
        check_sizes(open_source(folder), TINY, ("masked_lm", "next_sentence"))
    check_sizes(open_source(folder), TINY, ("masked_lm", "classifier"))


def test_a_missing_pooler_is_new(pretrained):
    _, folder = pretrained
    rewrite(folder, lambda t: {n: a for n, a in t.items() if "pooler" not in n})
    _, report = restored(folder)
    assert report.new == ("pooler/dense/bias", "pooler/dense/kernel")


def test_a_directory_with_merged_adapters_gives_a_model_what_it_computes(pretrained):
    model, folder = pretrained
    other = BertPretrainer(TINY)
    add_adapters(other, AdapterConfig(lora_rank=2))
    scatter_weights(other)
    restore_merged(other, folder)
    merged = other.plain_weights()
    for path, weight in model.plain_weights().items():
        np.testing.assert_array_equal(merged[path], weight, err_msg=path)


def test_another_shape_is_an_error_that_names_both_shapes(pretrained):
    _, folder = pretrained
    with pytest.raises(UserError, match=r"has the shape \[30, 16\].*needs \[31, 16\]"):
        restore(BertEncoder(TINY.replace(vocab_size=31)), folder)


def test_a_decoder_that_is_not_tied_is_refused(pretrained):
    _, folder = pretrained
    table = "bert.embeddings.word_embeddings.weight"
    rewrite(folder, lambda t: {**t, "cls.predictions.decoder.weight": t[table] + 1})
    with pytest.raises(UserError, match="not tied"):
        restored(folder)


def test_optimizer_slots_of_a_tf1_checkpoint_are_left_out_by_name(tmp_path):
    model = scatter_weights(BertEncoder(TINY))
    variables = {"global_step": np.array(7, np.int64)}
    for row, weight in zip(all_names(2), [None] * 39, strict=True):
        del weight
        array = np.array(next(v for v in model.weights if v.path == row.ours))
        variables |= {row.google: array}
        variables |= {f"{row.google}/{slot}": array * 0 for slot in ("adam_m", "adam_v")}
    write_google_checkpoint(tmp_path / "model.ckpt-7", variables)
    again = scatter_weights(BertEncoder(TINY), seed=5)
    report = restore(again, tmp_path / "model.ckpt-7")
    assert_same_weights(model, again)
    reasons = [reason for _, reason in report.ignored]
    assert (reasons.count("optimizer slot"), reasons.count("training state")) == (78, 1)
    assert "optimizer slot (78): bert/embeddings/LayerNorm/beta/adam_m" in report.table()


@pytest.mark.parametrize("damage", ["missing data", "cut data", "index of zeros"])
def test_a_damaged_tf1_checkpoint_gives_one_sentence(tmp_path, damage):
    for path in (GOLDEN / "pretrain" / "init").glob("bert_model.ckpt.*"):
        shutil.copy(path, tmp_path)
    data = tmp_path / "bert_model.ckpt.data-00000-of-00001"
    if damage == "missing data":
        data.unlink()
    elif damage == "cut data":
        data.write_bytes(data.read_bytes()[:1000])
    else:
        (tmp_path / "bert_model.ckpt.index").write_bytes(bytes(1886))
    with pytest.raises(UserError, match=r"bert_model\.ckpt: "):
        restore(BertPretrainer(golden_config()), tmp_path / "bert_model.ckpt")


def test_what_is_no_checkpoint_is_said(tmp_path):
    with pytest.raises(UserError, match="neither a model directory nor the prefix"):
        restored(tmp_path / "nothing")
    with pytest.raises(UserError, match=r"holds neither model\.safetensors"):
        restored(tmp_path)
