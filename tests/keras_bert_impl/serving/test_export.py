"""Exports of every format, each made once and asked by the client that lies beside it."""

import functools
import importlib.util
import json
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import keras_bert_impl as kb
from keras_bert_impl.checkpoints.convert import read_portable, write_portable
from keras_bert_impl.checkpoints.sentence_modules import SentenceSettings
from keras_bert_impl.checkpoints.task_settings import keep_task_settings, task_settings
from keras_bert_impl.engines.openvino_graph import beside_the_main_thread
from keras_bert_impl.errors import UserError
from keras_bert_impl.serving import export
from keras_bert_impl.serving.embedder import Embedder
from keras_bert_impl.serving.export import export_portable, export_saved_model, serve_model
from keras_bert_impl.serving.opened_model import open_model
from tests.support.model_folders import POSITIONS, WORD_VOCABULARY, write_classifier

TEXTS = ["the dog runs .", "a", "the cat sleeps , a list"]
PAIRS = [("the dog", "a cat runs ."), ("a", "list")]
SAVED = "SavedModel"
NAMES = ["rude", "loud", "short"]


def of_several_labels(folder):
    path = write_classifier(folder, NAMES) / "config.json"
    config = {**json.loads(path.read_text()), "problem_type": "multi_label_classification"}
    path.write_text(json.dumps(config))
    return folder


MODELS = {
    "onnx": lambda folder: write_classifier(folder, ["no", "yes"]),
    "openvino": of_several_labels,
    "litert": lambda folder: write_classifier(folder, ["score"]),
    "saved_model": of_several_labels,
}
PACKAGES = {
    "onnx": ("tf2onnx", "onnxruntime"),
    "openvino": ("openvino",),
    "litert": ("ai_edge_litert",),
    "saved_model": (),
}


def need(form):
    for package in PACKAGES[form]:
        pytest.importorskip(package, reason=f"needs the extra `{form}`")


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """What is served, the export of it in a format, and what was said of it."""
    root = tmp_path_factory.mktemp("exports")

    @functools.cache
    def made(form):
        need(form)
        folder, output = MODELS[form](root / f"{form}_model"), root / form
        opened = open_model(folder)
        served = serve_model(opened)
        if form == "saved_model":
            result = kb.export_model(folder, output)
        else:
            result = export_portable(opened, output, form)
        assert result.verification.largest_difference < 3e-6
        assert result.verification.milliseconds > 0
        files = [path for path in output.rglob("*") if path.is_file()]
        assert result.size == sum(path.stat().st_size for path in files)
        return served, output, result

    return made


def client_of(output):
    """A client opens OpenVINO itself."""
    names = runpy.run_path(str(output / "client.py"))
    beside_the_main_thread(names["opened"])
    return names["answer"]


@pytest.mark.slow
@pytest.mark.parametrize("form", MODELS)
def test_a_client_answers_as_the_graph_does(form, exports):
    served, output, _ = exports(form)
    answer = client_of(output)
    pairs = dict(zip(("text_a", "text_b"), map(list, zip(*PAIRS, strict=True)), strict=True))
    for texts, signature, inputs in ((TEXTS, "text", {"text": TEXTS}), (PAIRS, "text_pair", pairs)):
        expected = {name: x.numpy() for name, x in served.call(signature, inputs).items()}
        if "score" in expected:
            np.testing.assert_allclose(answer(texts), expected["score"], atol=1e-5)
            continue
        best, shares = zip(*answer(texts), strict=True)
        np.testing.assert_allclose(shares, expected["probabilities"], atol=1e-5)
        if "label" in expected:
            assert list(best) == [label.decode() for label in expected["label"]]
        else:
            held = [[x.decode() for x in row if x] for row in expected["labels"]]
            assert list(best) == held


@pytest.mark.slow
def test_a_client_gives_the_vectors_of_an_embedder(encoder_folder, tmp_path):
    need("openvino")
    embedder = kb.Embedder.from_pretrained(encoder_folder, normalize=True, max_seq_length=6)
    settings = SentenceSettings(max_seq_length=6, prompt="a list ", similarity="dot")
    Embedder(embedder.model, embedder.text, settings).save_pretrained(tmp_path / "model")
    expected = kb.Embedder.from_pretrained(tmp_path / "model").embed(TEXTS)
    for verified in (False, True):  # the second time it replaces what it wrote
        export_portable(
            open_model(tmp_path / "model"), tmp_path / "out", "openvino", None, verified
        )
    np.testing.assert_allclose(client_of(tmp_path / "out")(TEXTS), expected, atol=1e-5)
    said = json.loads((tmp_path / "out" / "settings.json").read_text())
    assert (said["max_seq_length"], said["asks"]) == (6, [["", "text"]])
    assert said["similarity"] == "dot"


def test_of_a_sentence_model_its_files_say_the_length_and_not_its_task(encoder_folder, tmp_path):
    need("openvino")
    longer = kb.Embedder.from_pretrained(encoder_folder, max_seq_length=9)
    longer.save_pretrained(tmp_path / "model")
    keep_task_settings(tmp_path / "model", {"max_seq_length": 5})
    opened, texts = open_model(tmp_path / "model"), ["the dog runs a cat", *TEXTS]
    expected = longer.embed(texts)
    vectors = serve_model(opened).call("embed", {"text": texts})["embedding"]
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    export_portable(opened, tmp_path / "out", "openvino", verify=False)
    found = kb.Embedder.from_pretrained(tmp_path / "out")
    np.testing.assert_allclose(found.embed(texts), expected, atol=1e-5)
    assert task_settings(found.config)["max_seq_length"] == found.max_seq_length == 9


def test_a_model_that_takes_more_than_texts_has_no_client(pretrainer_folder, tmp_path):
    need("openvino")
    opened = open_model(pretrainer_folder)
    result = export_portable(opened, tmp_path / "out", "openvino", verify=False)
    assert (result.answers, result.verification) == (None, None)
    inputs, outputs = result.signatures["serving_default"]
    assert "masked_lm_positions" in inputs
    assert outputs == ("masked_lm_logits", "next_sentence_logits")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    text = {"vocab.txt", "tokenizer.json", "tokenizer_config.json", "README.md"}
    assert names == {"model.xml", "model.bin", "settings.json", "config.json", "SHA256SUMS", *text}
    card = (tmp_path / "out" / "README.md").read_text()
    assert "There is no `client.py`" in card
    assert "`keras-bert predict --model=.`" in card


def test_an_operation_that_litert_lacks_is_named(tmp_path):
    class Recurrent:
        def export(self, path, **options):
            raise RuntimeError("loc(\"lstm\"): error: 'tf.TensorListReserve' op needs sizes\nmore")

    with pytest.raises(UserError, match=r"of this model \(tf.TensorListReserve\), as of one with"):
        export._write_litert(Recurrent(), tmp_path / "model.tflite")


def test_a_missing_runtime_is_one_sentence(opened, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"needs the package tf2onnx, .* pip install 'onnxruntime"):
        export_portable(opened, tmp_path / "new", "onnx")
    with pytest.raises(UserError, match="`format=tf` is unknown"):
        export_portable(opened, tmp_path / "new", "tf")
    assert not (tmp_path / "new").exists()


WATCHED = """
import runpy, sys
names = ("os.fork", "os.posix_spawn", "subprocess.Popen", "socket.getaddrinfo", "socket.connect")
sys.addaudithook(lambda event, _: event in names and print(event, file=sys.stderr))
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""


@pytest.mark.slow
def test_a_client_reports_its_use_to_nobody(exports, tmp_path):
    """OpenVINO would, from a process of its own that it starts when it is imported."""
    _, output, _ = exports("openvino")
    (tmp_path / "home").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, output / "client.py", "the dog"],
        env={"HOME": str(tmp_path / "home")},  # where a test is known as such, it reports nothing
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("([")
    assert done.stderr == ""
    assert [*(tmp_path / "home").iterdir()] == []


@pytest.fixture(scope="module")
def opened(classifier_folder):
    return open_model(classifier_folder)


@pytest.fixture(scope="module")
def served(opened):
    return serve_model(opened)


@pytest.fixture
def saves_nothing(monkeypatch):
    """A SavedModel is a file with a few bytes."""

    def save(_served, folder, **_options):
        (Path(folder) / "saved_model.pb").write_bytes(b"a model")

    monkeypatch.setattr(tf.saved_model, "save", save)


@pytest.mark.usefixtures("saves_nothing")
def test_a_saved_model_carries_its_vocabulary_casing_and_settings(opened, served, tmp_path):
    for name in ("saved_model.pb", "assets/settings.json"):  # which is replaced
        (tmp_path / "saved" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "saved" / name).write_bytes(b"old")
    export_saved_model(served, opened, tmp_path / "saved", verify=False)
    assert (tmp_path / "saved" / "saved_model.pb").read_bytes() == b"a model"
    assets = tmp_path / "saved" / "assets"
    assert (assets / "vocab.txt").read_text().split() == list(WORD_VOCABULARY.tokens)
    casing = json.loads((assets / "tokenizer_config.json").read_text())
    assert casing == {"do_lower_case": True, "strip_accents": None}
    assert json.loads((assets / "settings.json").read_text()) == {
        "labels": ["no", "yes"],
        "answers": "label",
        "asks": [["text", "text"], ["text_pair", "text_a", "text_b"]],
    }
    card = (tmp_path / "saved" / "README.md").read_text()
    assert 'pip install tensorflow tensorflow-text\npython client.py "text"\n' in card
    assert "`no`, `yes`" in card
    assert "export_model" not in card
    assert "predict" not in card


@pytest.mark.parametrize("form", [SAVED, "export of the format openvino"])
@pytest.mark.parametrize("name", ["", "thesis.txt"])
def test_what_is_no_export_is_left_alone(opened, served, tmp_path, form, name):
    (tmp_path / "thesis.txt").write_text("years of work")
    of_ids = functools.partial(export_portable, opened, form="openvino")
    write = functools.partial(export_saved_model, served, opened) if form == SAVED else of_ids
    with pytest.raises(UserError, match=f"{name}: exists and is no {form}"):
        write(folder=tmp_path / name)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize(
    ("form", "names"),
    [(SAVED, ("saved_model.pb", "variables/x")), ("openvino", ("model.xml", "model.bin"))],
)
def test_an_export_of_another_program_is_left_alone(opened, served, tmp_path, form, names):
    for name in names:
        (tmp_path / "theirs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "theirs" / name).write_text("their model")
    of_ids = functools.partial(export_portable, opened, form="openvino")
    write = functools.partial(export_saved_model, served, opened) if form == SAVED else of_ids
    with pytest.raises(UserError, match="theirs: exists and is no "):
        write(folder=tmp_path / "theirs")
    assert all((tmp_path / "theirs" / name).read_text() == "their model" for name in names)


@pytest.mark.usefixtures("saves_nothing")
def test_an_export_that_the_model_lies_in_is_not_replaced(
    opened, served, classifier_folder, tmp_path
):
    export_saved_model(served, opened, tmp_path / "saved", verify=False)
    prefix = tmp_path / "saved" / "variables" / "model.ckpt"
    write_portable(read_portable(classifier_folder), prefix, "google_tf1")
    with pytest.raises(UserError, match=r"the input .* lies there and would be replaced"):
        export_saved_model(served, open_model(prefix), tmp_path / "saved", verify=False)
    assert prefix.with_name("model.ckpt.index").exists()


def test_what_appears_while_an_export_is_made_is_left_alone(opened, served, tmp_path, monkeypatch):
    def save(_served, folder, **_options):
        (Path(folder) / "saved_model.pb").write_bytes(b"a model")
        (tmp_path / "saved").mkdir()
        (tmp_path / "saved" / "thesis.txt").write_text("years of work")

    monkeypatch.setattr(tf.saved_model, "save", save)
    with pytest.raises(UserError, match="saved: is there already; name a new folder"):
        export_saved_model(served, opened, tmp_path / "saved", verify=False)
    assert [path.name for path in (tmp_path / "saved").iterdir()] == ["thesis.txt"]


@pytest.mark.usefixtures("saves_nothing")
def test_what_else_lies_in_an_export_is_not_lost(opened, served, tmp_path):
    export_saved_model(served, opened, tmp_path / "saved", verify=False)
    (tmp_path / "saved" / "model").mkdir()
    with pytest.raises(UserError, match="holds model, which would be lost"):
        export_saved_model(served, opened, tmp_path / "saved", verify=False)


@pytest.mark.usefixtures("saves_nothing")
def test_an_export_that_does_not_load_or_gives_other_values_never_appears(
    opened, served, tmp_path, monkeypatch
):
    with pytest.raises(UserError, match=r"saved: the SavedModel cannot be loaded again"):
        export_saved_model(served, opened, tmp_path / "saved")

    def differs(*_):
        raise UserError("`logits` differ.")

    monkeypatch.setattr(export, "_loaded", lambda *_: served.call)
    monkeypatch.setattr(export, "verify_export", differs)
    with pytest.raises(UserError, match=r"saved: `logits` differ"):
        export_saved_model(served, opened, tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_said_in_one_sentence(opened, served, tmp_path, monkeypatch):
    def no_room(*_, **__):
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    monkeypatch.setattr(tf.saved_model, "save", no_room)
    with pytest.raises(UserError, match=r"saved: cannot be written \(No space left on device\)"):
        export_saved_model(served, opened, tmp_path / "saved", verify=False)
    assert list(tmp_path.iterdir()) == []


def test_texts_longer_than_the_positions_are_refused_at_export(opened):
    with pytest.raises(UserError, match=f"`max_seq_length=64` is more than the {POSITIONS} pos"):
        serve_model(opened, max_seq_length=64)


def test_labels_that_are_questions_of_their_own_get_probabilities_of_their_own(tmp_path):
    opened = open_model(of_several_labels(tmp_path / "model"))
    outputs = serve_model(opened).call("text", {"text": ["the dog runs", "a cat"]})
    assert sorted(outputs) == ["labels", "logits", "probabilities"]
    logits = outputs["logits"].numpy()
    np.testing.assert_allclose(outputs["probabilities"], 1 / (1 + np.exp(-logits)), rtol=1e-5)
    names = np.array([name.encode() for name in NAMES])
    assert outputs["labels"].numpy().tolist() == np.where(logits >= 0, names, b"").tolist()
    assert export.label_settings(opened) == {"labels": NAMES, "threshold": 0.5}


def test_several_numbers_are_not_served_as_classes(tmp_path):
    folder = write_classifier(tmp_path / "model", ["length", "width"])
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "problem_type": "regression"}))
    with pytest.raises(UserError, match="gives 2 numbers"):
        open_model(folder)


def test_an_export_tells_what_it_serves(exports):
    _, _, result = exports("saved_model")
    assert list(result.signatures) == ["serving_default", "text", "text_pair"]
    assert result.signatures["text_pair"] == (
        ("text_a", "text_b"),
        ("labels", "logits", "probabilities"),
    )
    assert result.verification.calls == 6
