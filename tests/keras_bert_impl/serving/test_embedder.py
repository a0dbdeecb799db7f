"""Texts to vectors, and directories that sentence-transformers reads."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import keras_bert_impl as kb
from keras_bert_impl.checkpoints.formats.safetensors_file import (
    read_shapes,
    read_tensor,
    write_safetensors,
)
from keras_bert_impl.checkpoints.sentence_modules import SentenceSettings
from keras_bert_impl.engines.engine import KerasEngine
from keras_bert_impl.models.adapters import AdapterConfig, add_adapters
from keras_bert_impl.serving.embedder import Embedder
from keras_bert_impl.serving.export import export_portable, serve_model
from keras_bert_impl.serving.opened_model import open_model
from tests.support.model_folders import write_encoder, write_pretrainer, write_prompted

TEXTS = ["the dog runs .", "", "a", "the cat sleeps , the dog runs , a list , a value .", "a cat"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("embedder") / "model")


@pytest.fixture(scope="module")
def embedder(folder):
    return Embedder.from_pretrained(folder)


def one_by_one(folder, texts, most=12):
    """The mean of each text's vectors, from the encoder alone."""
    encoder, tokenizer = (x.from_pretrained(folder) for x in (kb.BertEncoder, kb.Tokenizer))
    rows = [encoder(tokenizer(text, max_seq_length=most))["sequence_output"] for text in texts]
    return np.stack([np.array(row)[0].mean(axis=0) for row in rows])


def test_vectors_are_the_means_of_the_encoders(folder, embedder):
    found = embedder.embed(TEXTS)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, one_by_one(folder, TEXTS), atol=2e-6)


def test_they_stand_in_the_order_of_the_texts_whatever_stands_beside(embedder):
    alone = np.concatenate([embedder.embed(text) for text in TEXTS])
    np.testing.assert_allclose(embedder.embed(TEXTS * 30), np.tile(alone, (30, 1)), atol=1e-6)
    assert embedder.embed([]).shape == (0, 16)


def test_a_vocabulary_that_does_not_fit_the_texts_is_said_once(folder, caplog):
    embedder = Embedder.from_pretrained(folder)
    embedder.embed("the dog runs .")
    for _ in range(3):
        embedder.embed(["나는 배를 타고 강을 건넌다"] * 30)
    (record,) = caplog.records
    assert record.getMessage().startswith("the texts: 100.0 % of the words of a sample become")


def test_known_words_are_no_reason_for_a_warning(embedder, caplog):
    embedder.embed(TEXTS * 30)
    assert not caplog.records


@given(st.text(max_size=80))
def test_a_text_alone_is_cut_as_among_many(embedder, text):
    crowd = ["the dog runs . " * 70]  # two ways to cut, by how much there is
    alone, beside = embedder._encode([text]), embedder._encode([text, *crowd])
    np.testing.assert_array_equal(alone.ids, beside.ids[: beside.offsets[1]])


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """An export of a model of vectors, and one of a model that gives others."""
    pytest.importorskip("openvino", reason="needs the extra `openvino`")
    folder = tmp_path_factory.mktemp("exports")
    for name, write in {"vectors": write_prompted, "masks": write_pretrainer}.items():
        opened = open_model(write(folder / f"{name}_model"))
        export_portable(opened, folder / name, "openvino", verify=False)
    return folder


def test_an_export_gives_the_vectors_of_its_model_in_pieces_of_any_size(exports, monkeypatch):
    monkeypatch.setattr("keras_bert_impl.serving.embedder.has_tensorflow", lambda: False)
    monkeypatch.setattr(Embedder, "_tokenizer", None)  # needs TensorFlow
    made = Embedder.from_pretrained(exports / "vectors")
    model = Embedder.from_pretrained(exports / "vectors_model")
    for texts, options in {"a dog": {}, "the cat " * 200: {"prompt_name": "query"}}.items():
        expected = model.embed(texts, **options, dimensions=8)
        found = made.embed(texts, **options, dimensions=8)
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("vectors", {"pooling": "cls"}, "leave out `pooling`"),
        ("vectors", {"engine": "tensorflow"}, "which tensorflow cannot compute"),
        ("masks", {}, "gives no vectors of texts"),
    ],
)
def test_what_an_export_cannot_be_told_is_one_sentence(exports, name, options, sentence):
    with pytest.raises(kb.UserError, match=sentence):
        Embedder.from_pretrained(exports / name, **options)


def test_an_export_has_no_weights_to_save(exports, tmp_path):
    with pytest.raises(kb.UserError, match="open the model directory"):
        Embedder.from_pretrained(exports / "vectors").save_pretrained(tmp_path)


def test_int8_without_texts_is_refused(folder):
    pytest.importorskip("nncf", reason="needs the extra `openvino`")
    embedder = Embedder.from_pretrained(folder, engine="openvino", precision="int8")
    with pytest.raises(kb.UserError, match="needs texts to find its scales on"):
        embedder.embed("a dog")


def test_each_batch_is_told(folder, monkeypatch):
    monkeypatch.setattr(Embedder, "texts_at_once", 2)
    told, embedder = [], Embedder.from_pretrained(folder, deterministic=True)
    embedder.advance = told.append
    blocks = embedder.embed_blocks(TEXTS)
    assert (len(next(blocks)), told) == (2, [1, 1])
    assert (sum(map(len, blocks)), told) == (3, [1] * 5)


def test_batches_of_blocks_do_not_depend_on_the_cores(embedder):
    rows = [np.arange(12)] * 700  # as many tokens as two batches and a little more
    sizes = {True: [], False: []}
    for cores in (1, 2, 5):
        for evenly, found in sizes.items():
            one = Embedder(embedder.model, embedder.text)
            one.engine.batches_at_once = cores
            found.append([len(some) for some, _ in one._batches(rows, evenly)])
    assert sizes[False][0] == sizes[False][1] == sizes[False][2]
    assert sizes[True][1] != sizes[True][2]


def test_batches_have_few_shapes_whatever_the_number_of_texts(embedder):
    shapes = set()

    class Watched(KerasEngine):
        def compute(self, batches):
            for key, features in batches:
                shapes.add(features["input_ids"].shape)
                yield key, {"embedding": np.zeros((len(features["input_ids"]), 16))}

    watched = Embedder(embedder.model, embedder.text, engine=Watched(embedder.model))
    for count in range(1, 129):
        assert watched.embed(["a"] * count).shape == (count, 16)
    assert {length for _, length in shapes} == {8}
    assert len(shapes) == 8 + 4 * 4  # rows: 1 to 8, then four from a power of two to the next


def test_computed_alone_a_text_has_the_same_bytes_in_any_company(folder):
    alone = Embedder.from_pretrained(folder, deterministic=True)
    expected = np.concatenate([alone.embed(text) for text in TEXTS])
    np.testing.assert_array_equal(alone.embed([*TEXTS, *TEXTS])[5:], expected)


def test_openvino_gives_the_same_vectors(folder, embedder):
    pytest.importorskip("openvino", reason="needs the extra `openvino`")
    other = Embedder.from_pretrained(folder, engine="openvino")
    np.testing.assert_allclose(other.embed(TEXTS * 3), embedder.embed(TEXTS * 3), atol=3e-6)


def test_texts_are_truncated_and_prompted_as_the_settings_say(folder, embedder):
    changed = Embedder(
        embedder.model, embedder.text, SentenceSettings(max_seq_length=4, prompt="the ")
    )
    expected = one_by_one(folder, [f"the {text}" for text in TEXTS], 4)
    np.testing.assert_allclose(changed.embed(TEXTS), expected, atol=2e-6)


@pytest.mark.parametrize("given", ["a folder", "a model", "adapters"])
def test_vectors_are_of_the_weights_that_the_model_has_now(folder, tmp_path, given):
    embedder = Embedder.from_pretrained(folder)
    if given == "a model":
        embedder = Embedder(kb.BertEmbedder.from_pretrained(folder), embedder.text)
    before = embedder.embed(TEXTS)
    weights = embedder.model.weights
    if given == "adapters":
        embedder.embed(TEXTS)  # by a graph without them
        add_adapters(embedder.model, AdapterConfig(lora_rank=2))
        old = {weight.path for weight in weights}
        weights = [weight for weight in embedder.model.weights if weight.path not in old]
    for weight in weights:  # training, say
        weight.assign(weight + 0.1 * np.cos(np.arange(np.size(weight)).reshape(weight.shape)))
    after = embedder.embed(TEXTS)
    embedder.save_pretrained(tmp_path / "saved")
    assert np.abs(after - before).max() > 0.01
    kept = Embedder.from_pretrained(tmp_path / "saved").embed(TEXTS)
    np.testing.assert_allclose(after, kept, atol=1e-5)


@pytest.fixture(scope="module")
def prompted(tmp_path_factory):
    return Embedder.from_pretrained(write_prompted(tmp_path_factory.mktemp("prompts") / "model"))


def test_prompts_and_sizes_give_the_vectors_of_sentence_transformers(prompted, tmp_path):
    golden = np.load(Path(__file__).parents[2] / "golden/vectors/sentence_transformers.npz")
    prompted.save_pretrained(tmp_path / "again")
    for embedder in (prompted, Embedder.from_pretrained(tmp_path / "again")):
        for name in ("query", "document", "passage", ""):
            found = embedder.embed(golden["texts"], name or None)
            np.testing.assert_allclose(found, golden[name], atol=1e-5)
        found = embedder.embed(golden["texts"], "query", dimensions=8)
        np.testing.assert_allclose(found, golden["query_8"], atol=1e-5)


def test_a_model_of_a_directory_embeds_with_its_settings(prompted):
    model = kb.BertEmbedder.from_pretrained(prompted.source.folder)
    embedder = Embedder(model, prompted.text)
    assert embedder.settings == prompted.settings
    np.testing.assert_allclose(embedder.embed(TEXTS), prompted.embed(TEXTS), atol=1e-6)
    model.sentence = SentenceSettings(max_seq_length=999)  # a file may say so
    assert Embedder(model, prompted.text).max_seq_length == prompted.config.max_position_embeddings


def test_blocks_have_the_prompt_and_the_size_as_well(prompted):
    (block,) = prompted.embed_blocks(TEXTS, "query", 4)
    np.testing.assert_allclose(block, prompted.embed(TEXTS, "query", 4), atol=1e-6)
    assert prompted.embed([], "query", 4).shape == (0, 4)


@pytest.mark.parametrize("texts", ["two words", ["a", None], [("a", "b")]])
def test_blocks_are_of_texts_alone(prompted, texts):
    with pytest.raises(kb.UserError, match="text"):
        next(prompted.embed_blocks(texts, "query"))


def test_bytes_that_are_no_text_are_left_out_with_a_prompt_as_without(prompted):
    found = prompted.embed([b"the\xff"], "query")
    np.testing.assert_array_equal(found, prompted.embed(["the"], "query"))


def test_a_prompt_or_a_size_that_is_not_there_is_one_sentence(prompted):
    with pytest.raises(kb.UserError, match="no prompt 'q'; choose query, document, other, passage"):
        prompted.embed(TEXTS, prompt_name="q")
    for texts in (TEXTS, []):
        with pytest.raises(kb.UserError, match=r"`dimensions=17`: .* give 1 to 16"):
            prompted.embed(texts, dimensions=17)


@pytest.mark.parametrize("pooling", ["mean", "cls", "pooler"])
def test_a_written_directory_gives_the_same_vectors(folder, tmp_path, pooling):
    first = Embedder.from_pretrained(folder, pooling=pooling, normalize=True, max_seq_length=8)
    for _ in range(2):  # the second time it replaces what it wrote
        first.save_pretrained(tmp_path / "again")
    again = Embedder.from_pretrained(tmp_path / "again")
    assert again.settings == SentenceSettings(pooling, True, 8)
    np.testing.assert_array_equal(again.embed(TEXTS), first.embed(TEXTS))
    np.testing.assert_allclose(np.linalg.norm(again.embed(TEXTS), axis=1), 1.0, atol=1e-6)


def test_a_dense_layer_of_its_own_takes_the_poolers_place(folder, tmp_path):
    Embedder.from_pretrained(folder, pooling="pooler").save_pretrained(tmp_path / "model")
    path = tmp_path / "model" / "2_Dense" / "model.safetensors"
    tensors = {name: read_tensor(path, name) for name in read_shapes(path)}
    write_safetensors(path, {name: 0 * value for name, value in tensors.items()})
    assert not Embedder.from_pretrained(tmp_path / "model").embed(TEXTS).any()


def test_an_untrained_pooler_is_refused(folder, tmp_path):
    kb.BertTokenClassifier.from_pretrained(folder, num_labels=2).save_pretrained(tmp_path / "tags")
    path = tmp_path / "tags" / "model.safetensors"
    tensors = {name: read_tensor(path, name) for name in read_shapes(path)}
    kept = {name: value for name, value in tensors.items() if "pooler" not in name}
    write_safetensors(path, kept)
    with pytest.raises(kb.UserError, match="no weights of the pooler"):
        Embedder.from_pretrained(tmp_path / "tags", pooling="pooler")


def test_pairs_and_other_things_are_no_texts(embedder):
    with pytest.raises(kb.UserError, match="pairs of texts"):
        embedder.embed([("a", "cat")])
    with pytest.raises(kb.UserError, match="text 1 is 7"):
        embedder.embed(["a", 7])


def test_a_length_beyond_the_positions_is_refused_but_in_a_file_cut(folder, tmp_path):
    with pytest.raises(kb.UserError, match="max_seq_length=99"):
        Embedder.from_pretrained(folder, max_seq_length=99)
    Embedder.from_pretrained(folder).save_pretrained(tmp_path / "model")
    length = {"max_seq_length": 99, "do_lower_case": False}
    (tmp_path / "model" / "sentence_bert_config.json").write_text(json.dumps(length))
    with pytest.raises(kb.UserError):
        Embedder.from_pretrained(tmp_path / "model", max_seq_length=99)
    assert Embedder.from_pretrained(tmp_path / "model").max_seq_length == 12


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"normalize": "no"}, "normalize is 'no'; it must be true or false"),
        ({"max_seq_length": "8"}, "max_seq_length is '8'; it must be a whole number"),
        ({"max_seq_length": 0}, "`max_seq_length=0` leaves no room for text"),
        ({"path_or_name": None}, "None names no model"),
    ],
)
def test_what_is_no_setting_is_refused(folder, options, sentence):
    with pytest.raises(kb.UserError, match=sentence):
        Embedder.from_pretrained(**{"path_or_name": folder, **options})


def test_it_is_served_as_it_embeds(folder, tmp_path):
    made = Embedder.from_pretrained(folder, pooling="pooler", normalize=True)
    settings = SentenceSettings(max_seq_length=7, prompt="a list ")
    Embedder(made.model, made.text, settings).save_pretrained(tmp_path / "model")
    expected = Embedder.from_pretrained(tmp_path / "model").embed(TEXTS)
    served = serve_model(open_model(tmp_path / "model"))
    found = served.call("embed", {"text": TEXTS})["embedding"]
    np.testing.assert_allclose(found, expected, atol=2e-6)


# A process of its own: PyTorch and TensorFlow do not always bear one another in one.
THEIRS = """
import json, sys
import numpy as np
from sentence_transformers import SentenceTransformer
ours, theirs, texts = sys.argv[1:]
model = SentenceTransformer(ours, device="cpu")
np.save(f"{theirs}.npy", model.encode(json.loads(texts)))
model.save(theirs)
"""


@pytest.mark.weights
@pytest.mark.skipif(
    importlib.util.find_spec("sentence_transformers") is None, reason="needs the extra `bench`"
)
@pytest.mark.parametrize("pooling", ["mean", "cls", "pooler"])
def test_sentence_transformers_opens_ours_and_gives_the_same_vectors(
    weights_folder, tmp_path, pooling
):
    texts = ["A man plays a guitar.", "Prices rose by 3% (again).", "x " * 400, "é ünïcode 한국어"]
    ours = Embedder.from_pretrained(weights_folder, pooling=pooling)
    ours.save_pretrained(tmp_path / "ours")
    words = [str(tmp_path / "ours"), str(tmp_path / "theirs"), json.dumps(texts)]
    subprocess.run([sys.executable, "-c", THEIRS, *words], check=True)
    np.testing.assert_allclose(np.load(tmp_path / "theirs.npy"), ours.embed(texts), atol=1e-5)
    opened = Embedder.from_pretrained(tmp_path / "theirs")
    np.testing.assert_allclose(opened.embed(texts), ours.embed(texts), atol=1e-6)
