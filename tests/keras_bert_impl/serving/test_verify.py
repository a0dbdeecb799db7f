import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving import verify
from keras_bert_impl.serving.export import serve_model
from keras_bert_impl.serving.opened_model import open_model
from keras_bert_impl.serving.verify import ReloadError, Reply, verify_saved_model


@pytest.fixture(scope="module")
def opened(classifier_folder):
    return open_model(classifier_folder)


@pytest.fixture(scope="module")
def served(opened):
    return serve_model(opened)


def answers(served, change=lambda arrays: arrays):
    """A fresh process that gives the model's answers with a change."""

    def call(_folder, calls, timed):
        assert verify._call_here(served, timed)["logits"].shape == (1, 2)
        return Reply([change(verify._call_here(served, c)) for c in calls], 1.5)

    return call


def test_every_signature_is_called_at_two_sizes(opened, served, monkeypatch, tmp_path):
    monkeypatch.setattr(verify, "call_in_fresh_process", answers(served))
    found = verify_saved_model(served, opened, tmp_path)
    assert found.signatures == ("serving_default", "text", "text_pair")
    assert (found.calls, found.largest_difference) == (6, 0.0)
    assert (found.timed, found.milliseconds) == ("serving_default", 1.5)


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: {**arrays, "logits": arrays["logits"] + 0.01},
        lambda arrays: {**arrays, "logits": arrays["logits"] * np.nan},
        lambda arrays: {**arrays, "logits": arrays["logits"][:, :1]},
        lambda arrays: {**arrays, "label": np.full_like(arrays["label"], b"?")},
        lambda arrays: {"logits": arrays["logits"]},
    ],
    ids=["numbers", "no numbers", "shape", "texts", "names"],
)
def test_other_answers_are_refused(opened, served, monkeypatch, tmp_path, change):
    monkeypatch.setattr(verify, "call_in_fresh_process", answers(served, change))
    with pytest.raises(UserError, match="the SavedModel's answers differ"):
        verify_saved_model(served, opened, tmp_path)


def test_a_saved_model_that_does_not_load_is_refused(opened, served, monkeypatch, tmp_path):
    def fails(*_):
        raise ReloadError("no such op")

    monkeypatch.setattr(verify, "call_in_fresh_process", fails)
    with pytest.raises(UserError, match=r"cannot be loaded again \(no such op\)"):
        verify_saved_model(served, opened, tmp_path)
