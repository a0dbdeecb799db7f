"""HDF5 can lead out of its file; one that does is not read."""

import shutil

import h5py
import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.models.classifier import BertClassifier
from tests.support.elsewhere import TRANSFORMERS


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
    file["empty/loop"] = file.create_group("empty")


def one_tensor_under_many_names(file, name, path):
    del path
    file[name] = np.zeros(3, "float32")
    tables = "bert/tf_bert_for_sequence_classification/bert/embeddings/word_embeddings"
    for number in range(20):
        file[f"more/{number}"] = file[f"{tables}/weight:0"]


def without_a_header(path):
    with h5py.File(path) as file:
        place = h5py.h5o.get_info(file["classifier"].id).addr
    content = path.read_bytes()
    path.write_bytes(content[:place] + b"\xff" + content[place + 1 :])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (in_place_of_a_bias(external_link), "a link instead of a tensor"),
        (in_place_of_a_bias(soft_link), "a link instead of a tensor"),
        (in_place_of_a_bias(external_storage), "a tensor that lies in another file"),
        (in_place_of_a_bias(virtual), "a tensor that lies in another file"),
        (in_place_of_a_bias(unpacks_to_gigabytes), "a tensor that is compressed or cut off"),
        (in_place_of_a_bias(endless), "nested too deep"),
        (in_place_of_a_bias(one_tensor_under_many_names), "together are larger than the file"),
        (without_a_header, r"weights \(Unable to"),
        (lambda path: path.write_bytes(path.read_bytes()[:50_000]), "truncated file"),
        (lambda path: path.write_bytes(b"no HDF5"), "file signature not found"),
    ],
)
def test_a_file_of_weights_that_leads_elsewhere_is_refused(tmp_path, change, why):
    folder = broken(tmp_path, change)
    with pytest.raises(UserError, match=rf"tf_model\.h5: cannot be read as an HDF5 .*{why}"):
        BertClassifier.from_pretrained(folder)
