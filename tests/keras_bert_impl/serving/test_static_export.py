"""A model's static vectors, against the same computed step by step."""

import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest
import tokenizers

import keras_bert_impl as kb
from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.encoder import BertEncoder
from keras_bert_impl.serving.embedder import Embedder
from keras_bert_impl.serving.static_export import export_static
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.model_folders import WORD_VOCABULARY, WORDS, tiny_config
from tests.support.tiny_bert import scatter_weights

PLAIN = tokenizers.BertWordPieceTokenizer(
    {token: number for number, token in enumerate(WORD_VOCABULARY.tokens)}, strip_accents=True
)
TEXTS = ["the dog runs .", "", "a", "the cats [CLS] sleeps , the dog", "ＣAT é unknown"]
COUNTED = ["the dog", "the cat the", "a unknown"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("static") / "model"
    encoder = scatter_weights(BertEncoder(tiny_config()))
    write_model_directory(folder, encoder, TextSettings(WORD_VOCABULARY))
    return folder


def step_by_step(model, shares, a, width):
    """The cosines of texts: [CLS] of each token, principal components, weights, means."""
    encoder = kb.BertEncoder.from_pretrained(model)
    first, ids = 5, np.arange(5, 5 + len(WORDS))  # after the special tokens
    rows = np.stack([ids * 0 + 2, ids, ids * 0 + 3], axis=1)
    vectors = np.array(encoder({"input_ids": rows})["sequence_output"])[:, 0].astype(float)
    centred = vectors - vectors.mean(axis=0)
    left, deviations, _ = np.linalg.svd(centred, full_matrices=False)
    table = left * deviations / np.sqrt(deviations / np.sqrt(len(ids)))
    table = table[:, :width] * (a / (a + shares))[:, None]
    cut = PLAIN.encode_batch([text.lower() for text in TEXTS])
    rows = [[x - first for x in one.ids if x >= first] for one in cut]  # no [UNK]
    means = np.stack([table[row].sum(axis=0) for row in rows])
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
    return means @ means.T


def zipf():
    inverse = 1 / (np.arange(len(WORDS)) + 2)
    return inverse / inverse.sum()


def counted():
    ids = [x for one in PLAIN.encode_batch(COUNTED) for x in one.ids if x >= 5]
    return np.bincount(ids, minlength=17)[5:] / len(ids)


@pytest.mark.parametrize(
    ("texts", "shares", "a", "width"), [(None, zipf, 2e-4, None), (COUNTED, counted, 1e-3, 6)]
)
def test_they_are_what_the_method_makes(model, tmp_path, texts, shares, a, width):
    result = export_static(model, tmp_path / "static", width, texts)
    assert result.verification.largest_difference == 0
    found = Embedder.from_pretrained(tmp_path / "static").embed(TEXTS)
    assert found.shape == (len(TEXTS), width or 16)
    expected = step_by_step(model, shares(), a, width or 16)
    np.testing.assert_allclose(found @ found.T, expected, atol=2e-3)
    assert not found[1].any()  # no text, no vector


def test_the_tokenizer_beside_them_cuts_as_ours(model, tmp_path):
    export_static(model, tmp_path / "static", verify=False)
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "static" / "tokenizer.json"))
    ours = kb.Tokenizer.from_pretrained(model)
    for text in [*TEXTS, "the İ dog", "a " * 600]:
        assert theirs.encode(text, add_special_tokens=False).ids == ours.encode(text)


def test_they_are_read_to_the_length_that_was_asked_for(model, tmp_path):
    for length, folder in ((None, tmp_path / "all"), (5, tmp_path / "five")):
        export_static(model, folder, verify=False, max_seq_length=length)
    text = "the dog runs a cat sleeps , a list"
    found = Embedder.from_pretrained(tmp_path / "five")
    whole = Embedder.from_pretrained(tmp_path / "all")
    np.testing.assert_array_equal(found.embed(text), whole.embed("the dog runs a cat"))
    assert found.max_seq_length == 5
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "five" / "tokenizer.json"))
    assert len(theirs.encode(text, add_special_tokens=False).ids) == 5


def test_an_older_export_is_replaced_and_nothing_else(model, tmp_path):
    for _ in range(2):
        export_static(model, tmp_path / "static", 4, verify=False)
    with pytest.raises(UserError, match="is no export of the format static"):
        export_static(model, model, verify=False)
    with pytest.raises(UserError, match="`dimensions=17`: the model's vectors have 16"):
        export_static(model, tmp_path / "static", 17)


THEIRS = """
import json, sys
import numpy as np
folder, texts, out = sys.argv[1:]
from model2vec import StaticModel
from sentence_transformers import SentenceTransformer
models = StaticModel.from_pretrained(folder), SentenceTransformer(folder, device="cpu")
np.save(out, [model.encode(json.loads(texts)) for model in models])
"""


@pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("model2vec", "sentence_transformers"))),
    reason="needs the packages model2vec and sentence-transformers",
)
def test_both_libraries_open_them_and_give_the_same(model, tmp_path):
    export_static(model, tmp_path / "static", verify=False)
    words = [str(tmp_path / "static"), json.dumps(TEXTS), str(tmp_path / "theirs.npy")]
    subprocess.run([sys.executable, "-c", THEIRS, *words], check=True)
    ours = Embedder.from_pretrained(tmp_path / "static").embed(TEXTS)
    np.testing.assert_allclose(np.load(tmp_path / "theirs.npy"), [ours, ours], atol=1e-5)
