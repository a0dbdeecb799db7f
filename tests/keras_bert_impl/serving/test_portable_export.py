"""Models for other runtimes, asked by the client that lies next to them."""

import importlib.util
import json
import runpy
import subprocess
import sys

import numpy as np
import pytest

import keras_bert_impl as kb
from keras_bert_impl.checkpoints.sentence_modules import SentenceSettings
from keras_bert_impl.engines.openvino_graph import beside_the_main_thread
from keras_bert_impl.errors import UserError
from keras_bert_impl.serving import portable_export
from keras_bert_impl.serving.embedder import Embedder
from keras_bert_impl.serving.export import serve_model
from keras_bert_impl.serving.opened_model import open_model
from keras_bert_impl.serving.portable_export import export_portable
from tests.support import programs
from tests.support.model_folders import write_classifier

TEXTS = ["the dog runs .", "a", "the cat sleeps , a list"]
PAIRS = [("the dog", "a cat runs ."), ("a", "list")]
PACKAGES = {
    "onnx": ("tf2onnx", "onnxruntime"),
    "openvino": ("openvino",),
    "litert": ("ai_edge_litert",),
    "saved_model": (),
}


def exported(form, folder, output):
    """Writes a model; gives what its client answers with, and what the export found."""
    for package in PACKAGES[form]:
        pytest.importorskip(package, reason=f"needs the extra `{form}`")
    if form == "saved_model":
        result = kb.export_model(folder, output, verify=False)
    else:
        result = export_portable(open_model(folder), output, form)
        assert result.largest_difference < 3e-6
        assert result.milliseconds > 0
    # The client opens OpenVINO itself.
    client = beside_the_main_thread(lambda: runpy.run_path(str(output / "client.py")))
    return client["answer"], result


@pytest.mark.slow
@pytest.mark.parametrize("form", PACKAGES)
def test_a_client_gives_the_labels_and_probabilities_of_the_graph(
    form, classifier_folder, tmp_path
):
    answer, _ = exported(form, classifier_folder, tmp_path / "out")
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
@pytest.mark.parametrize("form", ["openvino", "saved_model"])
def test_a_client_gives_all_labels_that_hold(form, tmp_path):
    names = ["rude", "loud", "short", "old"]
    path = write_classifier(tmp_path / "model", names) / "config.json"
    config = {**json.loads(path.read_text()), "problem_type": "multi_label_classification"}
    path.write_text(json.dumps(config))
    answer, _ = exported(form, path.parent, tmp_path / "out")
    shares = serve_model(open_model(path.parent)).call("text", {"text": TEXTS})["probabilities"]
    held, found = zip(*answer(TEXTS), strict=True)
    np.testing.assert_allclose(found, shares, atol=1e-5)
    assert list(held) == [
        [name for name, share in zip(names, row, strict=True) if share >= 0.5]
        for row in shares.numpy()
    ]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["onnx", "openvino", "litert"])
def test_a_client_gives_the_vectors_of_an_embedder(form, encoder_folder, tmp_path):
    embedder = kb.Embedder.from_pretrained(encoder_folder, normalize=True, max_seq_length=6)
    settings = SentenceSettings(max_seq_length=6, prompt="a list ")
    Embedder(embedder.model, embedder.text, settings).save_pretrained(tmp_path / "model")
    expected = kb.Embedder.from_pretrained(tmp_path / "model").embed(TEXTS)
    for _ in range(2):  # the second time it replaces what it wrote
        answer, _ = exported(form, tmp_path / "model", tmp_path / "out")
    np.testing.assert_allclose(answer(TEXTS), expected, atol=1e-5)
    assert json.loads((tmp_path / "out" / "settings.json").read_text())["max_seq_length"] == 6


def test_a_model_that_takes_more_than_texts_has_no_client(pretrainer_folder, tmp_path):
    pytest.importorskip("openvino", reason="needs the extra `openvino`")
    opened = open_model(pretrainer_folder)
    result = export_portable(opened, tmp_path / "out", "openvino", verify=False)
    assert (result.answers, result.largest_difference) == (None, None)
    assert "masked_lm_positions" in result.inputs
    assert result.outputs == ("masked_lm_logits", "next_sentence_logits")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    text = {"vocab.txt", "tokenizer.json", "tokenizer_config.json"}
    assert names == {"model.xml", "model.bin", "settings.json", "config.json", "SHA256SUMS", *text}


def test_an_operation_that_litert_lacks_is_named(tmp_path):
    class Recurrent:
        def export(self, path, **options):
            raise RuntimeError("loc(\"lstm\"): error: 'tf.TensorListReserve' op needs sizes\nmore")

    with pytest.raises(UserError, match=r"of this model \(tf.TensorListReserve\), as of one with"):
        portable_export._write_litert(Recurrent(), tmp_path / "model.tflite")


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
    with pytest.raises(UserError, match=r"needs the package tf2onnx, .* pip install 'onnxruntime"):
        export_portable(opened, tmp_path / "new", "onnx")
    with pytest.raises(UserError, match="`format=tf` is unknown"):
        export_portable(opened, tmp_path / "new", "tf")
    assert not (tmp_path / "new").exists()


def kept(folder, **settings):
    """A classifier whose directory says more of its training."""
    path = write_classifier(folder, ["no", "yes"]) / "config.json"
    own = {"keras_bert_impl": {"task": "any", "max_seq_length": 8, **settings}}
    path.write_text(json.dumps({**json.loads(path.read_text()), "task_specific_params": own}))
    return folder


def asked(folder, *arguments):
    """What a client prints, and how it ends, asked on the command line."""
    alone = "import runpy, sys; runpy.run_path(sys.argv.pop(1), run_name='__main__')"
    done = programs.run(["-c", alone, folder / "client.py", *arguments])
    return done.returncode, done.stdout, done.stderr.strip().splitlines()[-1:]


@pytest.mark.slow
@pytest.mark.parametrize("form", [pytest.param("openvino", marks=pytest.mark.long), "saved_model"])
def test_a_client_asks_what_its_model_was_trained_on(form, tmp_path):
    pair, one = kept(tmp_path / "pair", num_texts=2), kept(tmp_path / "one", num_texts=1)
    answer, _ = exported(form, pair, tmp_path / "of_pairs")
    ((label, shares),) = answer([("the dog", "a cat")])
    code, printed, _ = asked(tmp_path / "of_pairs", "the dog", "a cat")
    assert (code, printed) == (0, f"{(label, shares)}\n")
    single = {"text_a": ["the dog"], "text_b": ["a cat"]}
    expected = serve_model(open_model(pair)).call("text_pair", single)
    np.testing.assert_allclose([shares], expected["probabilities"], atol=1e-5)
    code, printed, error = asked(tmp_path / "of_pairs", "the dog")
    assert (code, printed) == (1, "")
    assert "pairs of texts: give two" in error[0] or "(text_a, text_b)" in error[0]

    answer, _ = exported(form, one, tmp_path / "of_texts")
    assert len(answer(["the dog", "a cat"])) == 2
    for wrong in ([("the dog", "a cat")], []):
        with pytest.raises(ValueError, match=r"^This model (was trained on single|reads) texts"):
            answer(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["windows", pytest.param("head_tail", marks=pytest.mark.long)])
def test_a_client_refuses_texts_that_only_the_graph_reads_whole(way, tmp_path):
    settings = {"long_text": way, "doc_stride": 2, "window_answers": "mean"}
    folder = kept(tmp_path / "model", num_texts=1, **settings)
    answer, _ = exported("openvino", folder, tmp_path / "out")
    ((_, shares),) = answer(["the dog runs"])
    expected = serve_model(open_model(folder)).call("text", {"text": ["the dog runs"]})
    np.testing.assert_allclose([shares], expected["probabilities"], atol=1e-5)
    with pytest.raises(ValueError, match="longer than a row; only the SavedModel"):
        answer(["the dog runs " * 5])


WATCHED = """
import runpy, sys
names = ("os.fork", "os.posix_spawn", "subprocess.Popen", "socket.getaddrinfo", "socket.connect")
sys.addaudithook(lambda event, _: event in names and print(event, file=sys.stderr))
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""


@pytest.mark.slow
def test_a_client_reports_its_use_to_nobody(tmp_path):
    """OpenVINO would, from a process of its own that it starts when it is imported."""
    pytest.importorskip("openvino", reason="needs the extra `openvino`")
    opened = open_model(write_classifier(tmp_path / "model", ["no", "yes"]))
    export_portable(opened, tmp_path / "export", "openvino", verify=False)
    (tmp_path / "home").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, tmp_path / "export" / "client.py", "the dog"],
        env={"HOME": str(tmp_path / "home")},  # where a test is known as such, it reports nothing
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("('")
    assert done.stderr == ""
    assert list((tmp_path / "home").iterdir()) == []
