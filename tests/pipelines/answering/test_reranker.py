"""Cross-encoders: scores as sentence-transformers gives them, documents in their order."""

import json
import shutil

import numpy as np
import pytest

import keras_bert_impl as kb
from tests.support.model_folders import write_classifier
from tests.support.tiny_bert import GOLDEN

SAVED = GOLDEN / "vectors" / "cross_encoder"
_KNOWN = json.loads((SAVED / "forms.json").read_text())
TEXTS = ["a cat", "the dog sleeps", "a list", ""]


def written(folder, form, **more):
    """The golden model with the files of a form."""
    shutil.copytree(SAVED, folder)
    config = json.loads((folder / "config.json").read_text())
    files = {**form["files"], "config.json": {**config, **form["config"], **more}}
    for name, values in files.items():
        if values is not None:
            (folder / name).write_text(json.dumps(values))
    return folder


@pytest.mark.parametrize("name", _KNOWN["forms"])
def test_scores_are_those_of_sentence_transformers(tmp_path, name):
    form = _KNOWN["forms"][name]
    with kb.Reranker.from_pretrained(written(tmp_path / "m", form)) as reranker:
        found = reranker.score(_KNOWN["pairs"])
    np.testing.assert_allclose(found, form["scores"], atol=1e-5)


def test_both_engines_and_an_export_give_the_same_scores(tmp_path):
    from keras_bert_impl.serving.export import OPENVINO, export_portable
    from keras_bert_impl.serving.opened_model import open_model

    form = _KNOWN["forms"]["tanh"]
    folder, exported = written(tmp_path / "m", form), tmp_path / "exported"
    export_portable(open_model(folder), exported, OPENVINO)
    for model in (folder, exported):
        with kb.Reranker.from_pretrained(model, engine="openvino") as reranker:
            found = reranker.score(_KNOWN["pairs"])
        np.testing.assert_allclose(found, form["scores"], atol=1e-4)


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("torch.nn.modules.activation.GELU", "GELU"),
        ("os.system", "os.system"),
        ("torch.nn.modules.activation.Softmax", "Softmax"),
    ],
)
def test_no_class_is_imported_and_an_unknown_one_is_refused(tmp_path, entry, told):
    form = _KNOWN["forms"]["of no version"]
    entries = {"sentence_transformers": {"activation_fn": entry}}
    folder = written(tmp_path / "m", form, **entries)
    with pytest.raises(kb.UserError, match=f"activation_fn is '{told}', which is not known here"):
        kb.Reranker.from_pretrained(folder)
    assert "score" in kb.Predictor.from_pretrained(folder)(("a", "b"))  # the logit itself


def test_a_prompt_in_front_of_queries_is_refused(tmp_path):
    form = json.loads(json.dumps(_KNOWN["forms"]["default"]))
    form["files"]["config_sentence_transformers.json"] |= {
        "prompts": {"query": "query: "},
        "default_prompt_name": "query",
    }
    with pytest.raises(kb.UserError, match="with a prompt in front of queries"):
        kb.Reranker.from_pretrained(written(tmp_path / "m", form))


@pytest.fixture(scope="module")
def reranker(tmp_path_factory):
    folder = written(tmp_path_factory.mktemp("one") / "m", _KNOWN["forms"]["default"])
    with kb.Reranker.from_pretrained(folder) as opened:
        yield opened


def test_documents_come_best_first_and_equal_ones_in_their_order(reranker):
    documents = [*TEXTS, TEXTS[0]]
    scores = reranker.score([("the dog", text) for text in documents])
    found = reranker.rank("the dog", documents, return_documents=True)
    numbers = [one["corpus_id"] for one in found]
    assert numbers == np.argsort(-scores, kind="stable").tolist()
    assert [one["text"] for one in found] == [documents[number] for number in numbers]
    assert [one["score"] for one in found] == pytest.approx(scores[numbers], abs=1e-6)
    assert numbers.index(0) == numbers.index(4) - 1
    assert reranker.rank("the dog", documents, top_k=2) == [
        {"corpus_id": one["corpus_id"], "score": one["score"]} for one in found[:2]
    ]
    assert reranker.rank("the dog", []) == []
    assert reranker.rank("the dog", iter(documents), return_documents=True) == found
    assert reranker.rank("the dog", np.array(documents), top_k=np.int64(2)) == [
        {"corpus_id": one["corpus_id"], "score": one["score"]} for one in found[:2]
    ]
    pairs = np.array([("the dog", text) for text in documents])
    np.testing.assert_array_equal(reranker.score(pairs), scores)


@pytest.mark.parametrize(
    "mistake",
    [
        lambda asked: asked.rank("a", "one text"),
        lambda asked: asked.rank("a", None),
        lambda asked: asked.rank("a", ["b"], top_k=0),
        lambda asked: asked.rank("a", ["b"], top_k=1.5),
        lambda asked: asked.rank("a", [5]),
        lambda asked: asked.score(["one text"]),
        lambda asked: asked.score([("a", "b", "c")]),
    ],
)
def test_what_is_no_pair_is_told(reranker, mistake):
    with pytest.raises(kb.UserError):
        mistake(reranker)


def test_of_two_labels_the_second_is_the_positive_one_unless_another_is_named(tmp_path):
    folder, pair = write_classifier(tmp_path / "m", ["no", "yes"]), [("the dog", "a cat")]
    with kb.Predictor.from_pretrained(folder) as predictor:
        no, yes = predictor(pair)[0]["probabilities"]
        assert kb.Reranker(predictor).score(pair) == pytest.approx([yes], abs=1e-6)
        assert kb.Reranker(predictor, "no").score(pair) == pytest.approx([no], abs=1e-6)
        with pytest.raises(kb.UserError, match=r"`positive_label=maybe`: .* the labels no, yes"):
            kb.Reranker(predictor, "maybe")


def test_of_three_labels_one_is_named(tmp_path):
    folder = write_classifier(tmp_path / "m", ["contradiction", "entailment", "neutral"])
    with pytest.raises(kb.UserError, match="say by `positive_label`"):
        kb.Reranker.from_pretrained(folder)
    with kb.Reranker.from_pretrained(folder, positive_label="entailment") as opened:
        assert 0 < opened.score([("a dog", "a cat")])[0] < 1
