import json

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving import export
from keras_bert_impl.serving.export import export_model, export_saved_model, serve_model
from keras_bert_impl.serving.opened_model import open_model
from tests.support.model_folders import POSITIONS, WORD_VOCABULARY, write_classifier


@pytest.fixture(scope="module")
def opened(classifier_folder):
    return open_model(classifier_folder)


@pytest.fixture(scope="module")
def served(opened):
    return serve_model(opened)


def test_a_saved_model_carries_its_vocabulary_and_casing(opened, served, tmp_path):
    export_saved_model(served, opened, tmp_path / "saved", verify=False)
    assets = tmp_path / "saved" / "assets"
    assert (assets / "vocab.txt").read_text().split() == list(WORD_VOCABULARY.tokens)
    casing = json.loads((assets / "tokenizer_config.json").read_text())
    assert casing == {"do_lower_case": True, "strip_accents": None}
    assert json.loads((assets / "settings.json").read_text()) == {"labels": ["no", "yes"]}


def test_an_older_saved_model_is_replaced(opened, served, tmp_path):
    folder = tmp_path / "saved"
    folder.mkdir()
    (folder / "saved_model.pb").write_bytes(b"old")
    export_saved_model(served, opened, folder, verify=False)
    assert (folder / "saved_model.pb").stat().st_size > 3


def test_a_folder_with_other_things_in_it_is_left_alone(opened, served, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(UserError, match="exists and is no SavedModel"):
        export_saved_model(served, opened, tmp_path, verify=False)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_file_is_left_alone(opened, served, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(UserError, match=r"thesis\.txt: exists and is no SavedModel"):
        export_saved_model(served, opened, tmp_path / "thesis.txt", verify=False)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_saved_model_that_gives_other_values_never_appears(opened, served, tmp_path, monkeypatch):
    def differs(*_):
        raise UserError("the SavedModel's answers differ.")

    monkeypatch.setattr(export, "verify_saved_model", differs)
    with pytest.raises(UserError, match=r"saved: the SavedModel's answers differ"):
        export_saved_model(served, opened, tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []


def test_texts_longer_than_the_positions_are_refused_at_export(opened):
    with pytest.raises(UserError, match=f"`max_seq_length=64` is more than the {POSITIONS} pos"):
        serve_model(opened, max_seq_length=64)


def test_what_else_lies_in_a_saved_model_is_not_lost(opened, served, tmp_path):
    export_saved_model(served, opened, tmp_path / "saved", verify=False)
    (tmp_path / "saved" / "model").mkdir()
    with pytest.raises(UserError, match="holds model, which would be lost"):
        export_saved_model(served, opened, tmp_path / "saved", verify=False)


def test_a_full_disk_is_said_in_one_sentence(opened, served, tmp_path, monkeypatch):
    def no_room(*_, **__):
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    monkeypatch.setattr(tf.saved_model, "save", no_room)
    with pytest.raises(UserError, match=r"saved: cannot be written \(No space left on device\)"):
        export_saved_model(served, opened, tmp_path / "saved", verify=False)
    assert list(tmp_path.iterdir()) == []


def test_labels_that_are_questions_of_their_own_get_probabilities_of_their_own(tmp_path):
    folder = write_classifier(tmp_path / "model", ["rude", "loud", "short"])
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), "problem_type": "multi_label_classification"}
    path.write_text(json.dumps(config))
    outputs = serve_model(open_model(folder)).call("text", {"text": ["the dog runs", "a cat"]})
    assert sorted(outputs) == ["labels", "logits", "probabilities"]
    logits = outputs["logits"].numpy()
    np.testing.assert_allclose(outputs["probabilities"], 1 / (1 + np.exp(-logits)), rtol=1e-5)
    names = np.array([b"rude", b"loud", b"short"])
    assert outputs["labels"].numpy().tolist() == np.where(logits >= 0, names, b"").tolist()


def test_several_numbers_are_not_served_as_classes(tmp_path):
    folder = write_classifier(tmp_path / "model", ["length", "width"])
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "problem_type": "regression"}))
    with pytest.raises(UserError, match="gives 2 numbers"):
        open_model(folder)


def test_an_export_tells_what_it_serves_and_how_large_it_is(tmp_path):
    model = write_classifier(tmp_path / "model", ["no", "yes"])
    result = export_model(model, tmp_path / "saved", verify=False)
    assert list(result.signatures) == ["serving_default", "text", "text_pair"]
    assert result.signatures["text_pair"] == (
        ("text_a", "text_b"),
        ("label", "logits", "probabilities"),
    )
    files = [path for path in (tmp_path / "saved").rglob("*") if path.is_file()]
    assert result.size == sum(path.stat().st_size for path in files)
    assert result.verification is None
