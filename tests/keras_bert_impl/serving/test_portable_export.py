"""Models for other runtimes, asked by the client that lies beside them."""

import importlib.util
import json
import runpy

import numpy as np
import pytest

import keras_bert_impl as kb
from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.export import serve_model
from keras_bert_impl.serving.opened_model import open_model
from keras_bert_impl.serving.portable_export import export_portable

TEXTS = ["the dog runs .", "a", "the cat sleeps , a list"]
PAIRS = [("the dog", "a cat runs ."), ("a", "list")]
PACKAGES = {"onnx": ("tf2onnx", "onnxruntime"), "openvino": ("openvino",)}


def exported(form, folder, output, **options):
    for package in PACKAGES[form]:
        pytest.importorskip(package, reason=f"needs the extra `{form}`")
    result = export_portable(open_model(folder), output, form, **options)
    return result, runpy.run_path(str(output / "client.py"))["answer"]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["openvino", "onnx"])
def test_a_client_gives_the_labels_and_probabilities_that_a_saved_model_gives(
    form, classifier_folder, tmp_path
):
    result, answer = exported(form, classifier_folder, tmp_path / "out")
    assert (result.answers, result.outputs) == ("label", ("logits",))
    assert result.largest_difference < 3e-6
    served = serve_model(open_model(classifier_folder))
    pairs = dict(zip(("text_a", "text_b"), zip(*PAIRS, strict=True), strict=True))
    for texts, signature, inputs in (
        (TEXTS, "text", {"text": TEXTS}),
        (PAIRS, "text_pair", {name: list(some) for name, some in pairs.items()}),
    ):
        expected = served.call(signature, inputs)
        labels, shares = zip(*answer(texts), strict=True)
        assert list(labels) == [label.decode() for label in expected["label"].numpy()]
        np.testing.assert_allclose(shares, expected["probabilities"], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["openvino", "onnx"])
def test_a_client_gives_the_vectors_of_an_embedder(form, encoder_folder, tmp_path):
    embedder = kb.Embedder.from_pretrained(encoder_folder, normalize=True, max_seq_length=6)
    embedder.save_pretrained(tmp_path / "model")
    for _ in range(2):  # the second time it replaces what it wrote
        result, answer = exported(form, tmp_path / "model", tmp_path / "out")
    assert result.answers == "embedding"
    np.testing.assert_allclose(answer(TEXTS), embedder.embed(TEXTS), atol=1e-5)
    assert json.loads((tmp_path / "out" / "settings.json").read_text())["max_seq_length"] == 6


def test_a_model_without_answers_of_its_own_gives_its_numbers(pretrainer_folder, tmp_path):
    result, _ = exported("openvino", pretrainer_folder, tmp_path / "out", verify=False)
    assert (result.answers, result.largest_difference) == ("outputs", None)
    assert "masked_lm_positions" in result.inputs
    assert result.outputs == ("masked_lm_logits", "next_sentence_logits")


def test_a_missing_runtime_and_a_foreign_folder_are_one_sentence(
    classifier_folder, tmp_path, monkeypatch
):
    opened = open_model(classifier_folder)
    known = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: known("json"))
    (tmp_path / "mine.txt").write_text("")
    with pytest.raises(UserError, match="is no export of the format openvino"):
        export_portable(opened, tmp_path, "openvino")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"needs the package tf2onnx.*'keras_bert_impl\[onnx\]'"):
        export_portable(opened, tmp_path / "new", "onnx")
    with pytest.raises(UserError, match="`format=tf` is unknown"):
        export_portable(opened, tmp_path / "new", "tf")
    assert not (tmp_path / "new").exists()
