"""Vectors kept on disk: computed once, found again, made anew for another model or text."""

import json
import shutil
from collections import namedtuple

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.errors import UserError
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.training.strategy import Devices
from pipelines.records.row_set import make_rows
from pipelines.records.rows import Rows
from pipelines.vectors import row_vectors
from pipelines.vectors.row_vectors import VectorStore, encoder_identity
from tests.support.tiny_bert import TINY, scatter_weights

LENGTHS = np.array([5, 12, 3, 8, 1])
NAME = "layer_vectors"


def make_some_rows(folder, seed=0):
    draw, count = np.random.default_rng(seed), int(LENGTHS.sum())
    tokens = {
        "input_ids": draw.integers(1, TINY.vocab_size, count, np.int32),
        "input_mask": np.ones(count, np.int32),
        "segment_ids": np.zeros(count, np.int32),
    }
    block = Rows(np.arange(len(LENGTHS)), LENGTHS, tokens)
    return make_rows(folder / "rows", {"seed": seed}, [block])


@pytest.fixture(scope="module")
def encoder():
    return scatter_weights(BertEncoder(TINY, return_all_layers=True))


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return make_some_rows(tmp_path_factory.mktemp("rows"))


@pytest.fixture
def computed(monkeypatch):
    """The layers of each computation."""
    seen, compute = [], VectorStore._compute

    def note(store, split, rows, layers, folder):
        seen.append(list(layers))
        compute(store, split, rows, layers, folder)

    monkeypatch.setattr(VectorStore, "_compute", note)
    return seen


def store(folder, encoder, precision="float32"):
    devices = Devices(tf.distribute.get_strategy(), use_xla=False)
    return VectorStore(folder, encoder, devices, precision, batch_size=2)


def test_a_row_has_the_encoders_vectors_of_its_tokens(tmp_path, encoder, rows):
    kept = store(tmp_path, encoder).vectors("dev", rows, (0, 2), NAME)
    numbers = np.array([3, 0])
    batch = kept.read(numbers).padded(10)
    assert batch[NAME].shape == (2, 10, 2, TINY.hidden_size)
    alone = rows.read(numbers).padded(10)
    outputs = encoder(alone)
    for place, expected in enumerate((outputs["embedding_output"], outputs["sequence_output"])):
        for row, length in enumerate((8, 5)):
            found = batch[NAME][row, :length, place]
            np.testing.assert_allclose(found, expected[row, :length], atol=1e-5)
            assert not batch[NAME][row, length:].any()
    assert {name: value.tolist() for name, value in alone.items()} == {
        name: value.tolist() for name, value in batch.items() if name != NAME
    }


def test_a_second_start_computes_nothing_and_further_layers_only_themselves(
    tmp_path, encoder, rows, computed
):
    first = store(tmp_path, encoder).vectors("dev", rows, (1, 2), NAME)
    again = store(tmp_path, encoder).vectors("dev", rows, (1, 2), NAME)
    store(tmp_path, encoder).vectors("dev", rows, (0, 1, 2), NAME)
    assert computed == [[1, 2], [0]]
    every = np.arange(len(rows))
    assert np.array_equal(first.read(every).tokens[NAME], again.read(every).tokens[NAME])


def test_each_token_takes_four_bytes_a_number(tmp_path, encoder, rows):
    store(tmp_path, encoder).vectors("dev", rows, (1,), NAME)
    (file,) = tmp_path.glob("vectors-dev-*/vectors.npy")
    assert np.load(file).nbytes == LENGTHS.sum() * TINY.hidden_size * 4


def test_a_changed_model_text_or_precision_is_noticed(tmp_path, encoder, rows, computed):
    store(tmp_path, encoder).vectors("dev", rows, (2,), NAME)
    other = scatter_weights(BertEncoder(TINY, return_all_layers=True), seed=1)
    store(tmp_path, other).vectors("dev", rows, (2,), NAME)
    store(tmp_path, encoder).vectors("dev", make_some_rows(tmp_path, seed=1), (2,), NAME)
    store(tmp_path, encoder, "bfloat16").vectors("dev", rows, (2,), NAME)
    assert len(computed) == 4


def test_a_single_weight_makes_another_encoder_and_a_random_pooler_does_not():
    encoder = BertEncoder(TINY, return_all_layers=True)
    before = encoder_identity(encoder)
    scatter_weights(encoder.pooler)
    assert encoder_identity(encoder) == before
    weight = encoder.get_layer("embeddings").weights[0]
    moved = np.array(weight)
    moved[3, 4] = np.nextafter(moved[3, 4], 1)
    weight.assign(moved)
    assert encoder_identity(encoder) != before


def test_vectors_that_are_not_whole_are_made_again(tmp_path, encoder, rows, computed):
    store(tmp_path, encoder).vectors("dev", rows, (2,), NAME)
    (file,) = tmp_path.glob("vectors-dev-*/vectors.npy")
    whole = np.load(file)
    file.write_bytes(file.read_bytes()[:-8])
    kept = store(tmp_path, encoder).vectors("dev", rows, (2,), NAME)
    assert len(computed) == 2
    assert np.array_equal(kept.read(np.arange(5)).tokens[NAME][:, 0], whole)


def test_what_a_killed_process_left_looks_like_nothing_and_goes(tmp_path, encoder, rows, computed):
    def die(*_):
        raise KeyboardInterrupt

    whole, row_vectors_compute = store(tmp_path, encoder), VectorStore._compute
    VectorStore._compute = die
    try:
        with pytest.raises(KeyboardInterrupt):
            whole.vectors("dev", rows, (2,), NAME)
    finally:
        VectorStore._compute = row_vectors_compute
    (tmp_path / ".vectors-left").mkdir()  # a folder that no living process holds
    assert not list(tmp_path.glob("vectors-*"))
    whole.vectors("dev", rows, (2,), NAME)
    assert [path.name for path in tmp_path.glob(".vectors-*")] == []


def test_a_disk_that_is_too_small_is_said_before_anything_is_computed(
    tmp_path, encoder, rows, computed, monkeypatch
):
    usage = namedtuple("Usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10, 0, 10))
    with pytest.raises(UserError, match=r"of 2 layers need 3\.71kB, but 10B are free; name"):
        store(tmp_path, encoder).vectors("dev", rows, (1, 2), NAME)
    assert computed == []


def test_the_folder_says_what_its_vectors_come_from(tmp_path, encoder, rows):
    store(tmp_path, encoder).vectors("dev", rows, (2,), NAME)
    (file,) = tmp_path.glob(f"vectors-dev-*/{row_vectors.DESCRIPTION}")
    written = json.loads(file.read_text())["made_from"]
    assert (written["layer"], written["precision"]) == (2, "float32")
    assert written["encoder"] == encoder_identity(encoder)
