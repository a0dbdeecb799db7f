import json

import ml_dtypes
import numpy as np
import pytest

from keras_bert_impl.checkpoints.formats.hugging_face import (
    INDEX_FILE,
    WEIGHTS_FILE,
    HuggingFaceSource,
)
from keras_bert_impl.checkpoints.formats.safetensors_file import write_safetensors
from keras_bert_impl.checkpoints.names import all_names
from keras_bert_impl.errors import UserError
from tests.support.tiny_bert import TINY
from tests.support.written_weights import assert_same_weights, restored, rewrite, tensors_of


def old_name(name):
    return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
        "LayerNorm.bias", "LayerNorm.beta"
    )


SPELLINGS = {
    "without prefix": lambda t: {n.removeprefix("bert."): a for n, a in t.items()},
    "gamma and beta": lambda t: {old_name(n): a for n, a in t.items()},
    "tied decoder written out": lambda t: {
        **t,
        "cls.predictions.decoder.weight": t["bert.embeddings.word_embeddings.weight"],
        "cls.predictions.decoder.bias": t["cls.predictions.bias"],
    },
    "with position ids": lambda t: {**t, "bert.embeddings.position_ids": np.arange(32)[None]},
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_of_hugging_face_is_understood(pretrained, spelling):
    model, folder = pretrained
    rewrite(folder, SPELLINGS[spelling])
    again, report = restored(folder)
    assert_same_weights(model, again)
    assert "not part of this model" not in dict(report.ignored).values()


def test_of_two_encoders_none_is_taken_by_chance(pretrained):
    model, folder = pretrained
    towers = ("query_model.", "doc.")
    rewrite(folder, lambda t: {f"{one}{n}": a for one in towers for n, a in t.items()})
    with pytest.raises(
        UserError, match=r"holds several encoders \('doc.bert.', 'query_model.bert.'\)"
    ):
        HuggingFaceSource(folder)
    plain = {name.removeprefix("doc."): array for name, array in tensors_of(folder).items()}
    rewrite(folder, lambda _: plain)
    again, _ = restored(folder)
    assert_same_weights(model, again)


def test_a_link_that_leads_nowhere_is_named(tmp_path):
    (tmp_path / WEIGHTS_FILE).symlink_to(tmp_path / "blob")
    with pytest.raises(UserError, match=r"model\.safetensors: leads to .*blob, which is not there"):
        HuggingFaceSource(tmp_path)


def test_numbers_of_eight_bits_are_refused(pretrained):
    _, folder = pretrained
    name = "bert.pooler.dense.bias"
    rewrite(folder, lambda t: {**t, name: t[name].astype(ml_dtypes.float8_e4m3fn)})
    with pytest.raises(UserError, match=f"{name} holds F8_E4M3, .*name the model before it was"):
        restored(folder)


def test_shards_are_read_as_one(pretrained):
    model, folder = pretrained
    tensors, names = tensors_of(folder), ("model-1.safetensors", "model-2.safetensors")
    (folder / WEIGHTS_FILE).unlink()
    weight_map = {}
    for number, name in enumerate(names):
        part = dict(list(tensors.items())[number::2])
        write_safetensors(folder / name, part)
        weight_map |= dict.fromkeys(part, name)
    (folder / INDEX_FILE).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    again, _ = restored(folder)
    assert_same_weights(model, again)

    write_safetensors(folder / names[1], tensors)
    with pytest.raises(UserError, match=r"lists shards of which several hold tensor 'bert\.emb"):
        restored(folder)

    (folder / names[1]).unlink()
    with pytest.raises(UserError, match=r"model-2\.safetensors: no such file"):
        restored(folder)


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ("{}", "the entry weight_map"),
        ('{"weight_map": {"a": "../../etc/passwd"}}', "must be the name of a file beside it"),
        ('{"weight_map": {"a": "/x/model.safetensors"}}', "must be the name of a file beside it"),
    ],
)
def test_an_index_that_points_elsewhere_is_refused(tmp_path, index, words):
    (tmp_path / INDEX_FILE).write_text(index)
    with pytest.raises(UserError, match=words):
        restored(tmp_path)


def test_a_pickle_is_never_opened(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'touch /tmp/owned'\ntR.")
    with pytest.raises(UserError, match="a pickle, which can run any code and is never opened"):
        restored(tmp_path)


def test_a_file_that_no_shard_completes_is_named(pretrained):
    _, folder = pretrained
    index = {"weight_map": {"bert.pooler.dense.bias": WEIGHTS_FILE, "lost": "model-2.safetensors"}}
    write_safetensors(folder / "model-2.safetensors", {"other": np.zeros(1, np.float32)})
    (folder / WEIGHTS_FILE).rename(folder / "model-1.safetensors")
    index["weight_map"]["bert.pooler.dense.bias"] = "model-1.safetensors"
    (folder / INDEX_FILE).write_text(json.dumps(index))
    with pytest.raises(UserError, match="lists tensor 'lost', which no shard holds"):
        restored(folder)


def test_a_tensor_is_found_with_its_shape_and_whether_it_is_transposed(pretrained):
    model, folder = pretrained
    source = HuggingFaceSource(folder)
    variables = {variable.path: np.asarray(variable) for variable in model.weights}
    for row in all_names(TINY.num_hidden_layers, ("masked_lm", "next_sentence")):
        hit = source.find(row)
        array = source.read(hit.name)
        assert hit.transposed == row.hugging_face_transposed
        assert source.shapes[hit.name] == array.shape
        assert np.array_equal(array.T if hit.transposed else array, variables[row.ours])
    assert source.find(all_names(0, ("span",))[-1]) is None
