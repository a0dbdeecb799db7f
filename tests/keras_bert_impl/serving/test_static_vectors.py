"""Static vectors in the files of other libraries, each read as its own library reads them."""

import json

import numpy as np
import pytest
import tokenizers
from safetensors.numpy import save_file

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.answerer import ask
from keras_bert_impl.serving.embedder import Embedder
from keras_bert_impl.serving.exported import find_exported
from keras_bert_impl.serving.http.app import make_app
from keras_bert_impl.serving.http.config import ServerConfig
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS
from pipelines.answering.config import AnsweringConfig
from pipelines.answering.opening import open_answering_model
from tests.support import asgi_client

TOKENS = ["[PAD]", "[UNK]", "a", "dog", "##s"]  # no others: Model2Vec removes them
DRAWN = np.random.default_rng(0).standard_normal((7, 3)).astype(np.float32)
UNK, A, DOG, S = DRAWN[1:5]
TEXTS = ["a dogs", "cat a", "cat", "", "Dog dog a a"]
MODULES = [
    {"type": "sentence_transformers.models.StaticEmbedding", "path": "0_StaticEmbedding"},
    {"type": "sentence_transformers.models.Normalize", "path": "1_Normalize"},
]
MAPPING, WEIGHTS = np.array([6, 5, 5, 0, 1]), np.array([1, 2, 3, 4, 5], np.float16)


def write_static(folder, tensors, tokens=TOKENS, truncation=None, **files):
    folder.mkdir(parents=True)
    ids = {token: number for number, token in enumerate(tokens)}
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(ids, unk_token="[UNK]"))
    made.normalizer = tokenizers.normalizers.BertNormalizer()
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    if truncation:
        made.enable_truncation(truncation)
    made.save(str(folder / "tokenizer.json"))
    save_file(tensors, folder / "model.safetensors")
    root = folder.parent if folder.name == "0_StaticEmbedding" else folder
    for name, values in files.items():
        (root / f"{name}.json").write_text(json.dumps(values))
    return root


def config(**more):
    return {"config": {"model_type": "model2vec", **more}}


def scaled(vector):
    return vector / np.linalg.norm(vector)


CASES = {
    "model2vec leaves [UNK] out": (
        {"embeddings": DRAWN[:5]},
        config(),
        [(A + DOG + S) / 3, A, 0 * A, 0 * A, (2 * DOG + 2 * A) / 4],
    ),
    "and truncates": (
        {"embeddings": DRAWN[:5]},
        config(max_length=2, normalize=True),
        [scaled(A + DOG), scaled(A), 0 * A, 0 * A, scaled(DOG)],
    ),
    "tokens share vectors, and have weights": (
        {"embeddings": DRAWN, "mapping": MAPPING, "weights": WEIGHTS},
        config(max_length=None),
        [
            (3 * DRAWN[5] + 4 * DRAWN[0] + 5 * DRAWN[1]) / 3,
            *(3 * DRAWN[5], 0 * A, 0 * A, (8 * DRAWN[0] + 6 * DRAWN[5]) / 4),
        ],
    ),
    "sentence-transformers reads [UNK]": (
        {"embedding.weight": DRAWN[:5]},
        {"modules": MODULES, "truncation": 3},
        [scaled(A + DOG + S), scaled(UNK + A), scaled(UNK), 0 * A, scaled(2 * DOG + A)],
    ),
}


@pytest.mark.parametrize(("tensors", "files", "expected"), CASES.values(), ids=CASES)
def test_each_library_s_folder_is_read_as_it_reads_it(tmp_path, tensors, files, expected):
    place = "m/0_StaticEmbedding" if "modules" in files else "m"
    folder = write_static(tmp_path / place, tensors, **files)
    found = Embedder.from_pretrained(folder)
    np.testing.assert_allclose(found.embed(TEXTS), expected, atol=1e-6)
    served = open_answering_model(AnsweringConfig(model=str(folder)))
    answers = ask(served.answerers["embed"], [{"text": text} for text in TEXTS])
    np.testing.assert_allclose([x["embedding"] for x in answers], expected, atol=1e-6)
    assert served.description["engine"] == "static"
    assert np.array_equal(found.embed(TEXTS[::-1] * 99)[:5], found.embed(TEXTS)[::-1])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"engine": "openvino"}, "which openvino cannot compute; leave `engine` out"),
        ({"precision": "int8"}, "leave out `precision=int8`"),
        ({"pooling": "cls"}, "leave out `pooling`"),
    ],
)
def test_what_does_not_exist_for_them_is_said(tmp_path, options, said):
    folder = write_static(tmp_path / "m", {"embeddings": DRAWN[:5]}, **config())
    with pytest.raises(UserError, match=said):
        Embedder.from_pretrained(folder, **options)


@pytest.mark.parametrize(("length", "words"), [(1, 1), (2, 2), (600, 600)])
def test_as_many_tokens_are_read_as_are_asked_for_offline_and_served(tmp_path, length, words):
    folder = write_static(tmp_path / "m", {"embeddings": DRAWN[:5]}, **config())
    text, expected = "dog " + "a " * 700, (DOG + (words - 1) * A) / words
    found = Embedder.from_pretrained(folder, max_seq_length=length)
    np.testing.assert_allclose(found.embed(text)[0], expected, atol=1e-5)
    served = open_answering_model(AnsweringConfig(model=str(folder), max_seq_length=length))
    (answer,) = ask(served.answerers["embed"], [{"text": text}])
    np.testing.assert_allclose(answer["embedding"], expected, atol=1e-5)
    assert served.description["max_seq_length"] == found.max_seq_length == length
    with pytest.raises(UserError, match="`max_seq_length=-1` leaves no room for text; give 1"):
        Embedder.from_pretrained(folder, max_seq_length=-1)


def test_a_table_of_other_tokens_and_another_tokenizer_are_one_sentence(tmp_path):
    folder = write_static(tmp_path / "rows", {"embeddings": DRAWN}, **config())
    with pytest.raises(UserError, match="it has 7 vectors, and its tokenizer 5 tokens"):
        Embedder.from_pretrained(folder)
    pairs = tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0}, []))
    pairs.save(str(folder / "tokenizer.json"))
    with pytest.raises(UserError, match=r"tokenizer.json: model: type is 'BPE'"):
        Embedder.from_pretrained(folder)


def test_vectors_without_end_are_refused_before_they_are_made(tmp_path):
    tensors = {"embeddings": np.zeros((1, 16_385), np.float16), "mapping": np.zeros(5, int)}
    folder = write_static(tmp_path / "m", tensors, **config())
    with pytest.raises(UserError, match="a vector has 16385 numbers, more than 16384"):
        find_exported(folder)


def test_a_server_counts_the_tokens_that_static_vectors_have_and_no_others(tmp_path):
    folder = write_static(tmp_path / "m", {"embeddings": DRAWN[:5]}, **config())
    served = open_answering_model(AnsweringConfig(model=str(folder)))
    app = make_app({"m": served}, ServerConfig())
    for texts, count in ((TEXTS, 10), ([""], 0)):
        reply = asgi_client.ask(app, "POST", "/v1/embeddings", {"model": "m", "input": texts})
        assert reply.json()["usage"]["total_tokens"] == count
        found = [one["embedding"] for one in reply.json()["data"]]
        np.testing.assert_allclose(found, Embedder.from_pretrained(folder).embed(texts), atol=1e-6)


@pytest.mark.parametrize(
    ("tensors", "modules", "said"),
    [
        (
            {"embedding.weight": DRAWN[:5]},
            [MODULES[0], {"type": "sentence_transformers.models.Dense", "path": "1_Dense"}],
            "a model of StaticEmbedding, Dense cannot be opened here",
        ),
        (
            {"embeddings": DRAWN, "mapping": np.array([6, 5, -1, 0, 1])},
            MODULES,
            "a token has the vector number -1",
        ),
    ],
)
def test_what_would_give_wrong_vectors_is_refused(tmp_path, tensors, modules, said):
    folder = write_static(tmp_path / "m" / "0_StaticEmbedding", tensors, modules=modules)
    with pytest.raises(UserError, match=said):
        Embedder.from_pretrained(folder)


def test_prompts_are_read_as_those_of_other_models(tmp_path):
    prompts = {"prompts": {"query": "a "}, "default_prompt_name": None}
    said = {"modules": MODULES, "config_sentence_transformers": prompts}
    tensors = {"embedding.weight": DRAWN[:5]}
    folder = write_static(tmp_path / "m" / "0_StaticEmbedding", tensors, **said)
    found = Embedder.from_pretrained(folder).embed("dog", prompt_name="query")
    np.testing.assert_allclose(found, [scaled(A + DOG)], atol=1e-6)


def test_special_tokens_that_the_table_has_are_in_no_mean(tmp_path):
    tokens = [*SPECIAL_TOKENS, "a", "dog"]
    folder = write_static(tmp_path / "m", {"embeddings": DRAWN}, tokens, **config())
    expected = (DRAWN[5] + DRAWN[6]) / 2
    np.testing.assert_allclose(Embedder.from_pretrained(folder).embed("a dog")[0], expected)
