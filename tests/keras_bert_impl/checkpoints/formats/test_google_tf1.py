"""TF1 checkpoints as TensorFlow 1 itself writes them."""

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.checkpoints.convert import read_portable, write_portable
from keras_bert_impl.checkpoints.formats.google_tf1 import GoogleSource, write_google_checkpoint
from keras_bert_impl.checkpoints.restore import names_of, open_source, restore
from keras_bert_impl.checkpoints.sources import is_google_checkpoint
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import BertClassifier
from keras_bert_impl.models.pretrainer import BertPretrainer
from keras_bert_impl.models.token_models import BertSpanLabeler
from tests.support.tiny_bert import TINY, VOCABULARY, scatter_weights

v1 = tf.compat.v1


def variables_of(model):
    weights = {variable.path: np.array(variable.value) for variable in model.weights}
    return {
        row.google: weights[row.ours].T if row.google_transposed else weights[row.ours]
        for row in names_of(model)
    }


def save(folder, arrays, slots=False, partitions=0, **options):
    """Writes a checkpoint with a TF1 session, `bert_config.json` and `vocab.txt` beside it."""
    folder.mkdir()
    with tf.Graph().as_default(), v1.Session() as session:
        for name, array in arrays.items():
            cut = partitions and array.ndim == 2 and len(array) % partitions == 0
            v1.get_variable(
                name,
                shape=array.shape,
                dtype=array.dtype,
                initializer=_values(array),
                partitioner=v1.fixed_size_partitioner(partitions) if cut else None,
            )
            for slot in ("adam_m", "adam_v") if slots else ():
                v1.get_variable(f"{name}/{slot}", initializer=tf.zeros(array.shape))
        v1.train.get_or_create_global_step()
        session.run(v1.global_variables_initializer())
        v1.train.Saver(**options).save(session, f"{folder}/model.ckpt", global_step=7)
    (folder / "bert_config.json").write_text(json.dumps(TINY.to_google()))
    VOCABULARY.write(folder / "vocab.txt")
    return folder / "model.ckpt-7"


def _values(array):
    def initialize(shape, dtype=None, partition_info=None):
        start = partition_info.var_offset[0] if partition_info else 0
        return tf.constant(array[start : start + shape[0]], dtype)

    return initialize


PRETRAINER = variables_of(scatter_weights(BertPretrainer(TINY)))
WRITTEN = {
    "with optimizer slots": {"slots": True},
    "variables in two parts": {"partitions": 2},
    "a data file a device": {"sharded": True},
}


@pytest.mark.parametrize("way", WRITTEN)
def test_however_it_was_written_it_goes_round_bit_by_bit(tmp_path, way):
    prefix = save(tmp_path / "google", PRETRAINER, **WRITTEN[way])
    model = read_portable(prefix, do_lower_case=False)
    write_portable(model, tmp_path / "hf", "hugging_face")
    write_portable(read_portable(tmp_path / "hf"), tmp_path / "b" / "m.ckpt", "google_tf1")
    written = GoogleSource(tmp_path / "b" / "m.ckpt")
    assert written.names() == sorted(PRETRAINER)
    for name, array in PRETRAINER.items():
        assert written.read(name).tobytes() == array.tobytes(), name
    reasons = {reason for _, reason in model.report.ignored}
    assert reasons == {"training state"} | ({"optimizer slot"} if "slots" in way else set())


def test_every_way_to_name_it_is_understood(tmp_path, monkeypatch):
    prefix = save(tmp_path / "google", PRETRAINER)
    monkeypatch.chdir(tmp_path)
    data = f"{prefix}.data-00000-of-00001"
    for name in (tmp_path / "google", f"{prefix}.index", data, "google/model.ckpt-7"):
        model = scatter_weights(BertPretrainer(TINY), seed=5)
        assert restore(model, name).new == ()
        assert variables_of(model).keys() == PRETRAINER.keys()
        assert all(np.array_equal(a, PRETRAINER[n]) for n, a in variables_of(model).items())
        assert read_portable(name, do_lower_case=False).config == TINY


HEADS = {
    "BertForSequenceClassification": BertClassifier(TINY, num_labels=3),
    "BertForQuestionAnswering": BertSpanLabeler(TINY),
}


@pytest.mark.parametrize("architecture", HEADS)
def test_a_fine_tuned_head_is_recognized(tmp_path, architecture):
    prefix = save(tmp_path / "google", variables_of(scatter_weights(HEADS[architecture])))
    write_portable(read_portable(prefix, do_lower_case=False), tmp_path / "hf", "hugging_face")
    config = json.loads((tmp_path / "hf" / "config.json").read_text())
    assert config["architectures"] == [architecture]


@pytest.mark.parametrize(
    "rename", [lambda name: name.removeprefix("bert/"), lambda name: f"tower/{name}"]
)
def test_names_without_prefix_or_in_a_scope_are_understood(tmp_path, rename):
    prefix = save(tmp_path / "google", {rename(name): a for name, a in PRETRAINER.items()})
    model = scatter_weights(BertPretrainer(TINY), seed=5)
    restore(model, prefix)
    assert all(np.array_equal(a, PRETRAINER[n]) for n, a in variables_of(model).items())


def test_a_full_disk_is_said_in_one_sentence_and_leaves_nothing(tmp_path, monkeypatch):
    def half(prefix, **_):
        (tmp_path / f"{prefix}.data-00000-of-00001").write_bytes(b"half")
        told = f"{{{{function_node}}}} {prefix}.data; No space left on device [Op:SaveV2]"
        raise tf.errors.ResourceExhaustedError(None, None, told)

    monkeypatch.setattr(tf.raw_ops, "SaveV2", half)
    with pytest.raises(UserError, match=r"m\.ckpt: cannot be written \(No space left on device\)"):
        write_google_checkpoint(tmp_path / "m.ckpt", {"bias": np.ones(3, np.float32)})
    assert list(tmp_path.iterdir()) == []


def test_a_kill_between_two_files_leaves_no_checkpoint_of_both_models(tmp_path, monkeypatch):
    prefix, rename = tmp_path / "m.ckpt", Path.replace
    write_google_checkpoint(prefix, {"bias": np.ones(3, np.float32)})

    def dies(path, target):
        if Path(target).suffix == ".index":
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "replace", dies)
    with pytest.raises(KeyboardInterrupt):
        write_google_checkpoint(prefix, {"bias": np.zeros(3, np.float32)})
    assert not is_google_checkpoint(prefix)


@pytest.mark.parametrize("objects", [False, True])
def test_sizes_that_no_data_file_bears_out_are_refused(tmp_path, objects):
    prefix = tmp_path / "model.ckpt"
    if objects:
        tf.train.Checkpoint(table=tf.Variable(tf.zeros([64, 64]))).write(str(prefix))
    else:
        write_google_checkpoint(prefix, {"table": np.zeros([64, 64], np.float32)})
    data = prefix.with_name("model.ckpt.data-00000-of-00001")
    data.write_bytes(data.read_bytes()[:5000])
    with pytest.raises(UserError, match="its tensors are larger than its data files"):
        open_source(prefix)
