"""One model asked at every door: the same default, the same refusal, the same answer."""

import io
import json
from contextlib import redirect_stdout

import pytest

import keras_bert_impl as kb
from keras_bert_impl.checkpoints.task_settings import keep_task_settings
from keras_bert_impl.serving.http.app import make_app
from pipelines.answering.config import PredictConfig
from pipelines.answering.opening import open_answering_model
from pipelines.answering.predict import predict
from pipelines.answering.serving import ServeConfig, page_of
from pipelines.tasks.register import open_and_serve
from tests.support.asgi_client import ask
from tests.support.model_folders import write_classifier, write_tagger

SENTENCE = "The dog runs."
PAIR = ("The dog runs.", "a cat")


def by_command(folder, asked):
    texts = (
        {"text": [asked]}
        if isinstance(asked, str)
        else {"text": [asked[0]], "text_pair": [asked[1]]}
    )
    printed = io.StringIO()
    with redirect_stdout(printed):
        predict(PredictConfig(model=str(folder), format="json", **texts))
    return json.loads(printed.getvalue())["answer"]


def by_python(folder, asked):
    with kb.Predictor.from_pretrained(folder) as predictor:
        return predictor(asked)


def served_by(folder):
    config = ServeConfig(model=(f"m={folder}",))
    models = {name: open_answering_model(how) for name, how in config.models().items()}
    return make_app(models, config, **page_of(config, models))


def by_server(folder, asked):
    one = asked if isinstance(asked, str) else dict(zip(("text_a", "text_b"), asked, strict=True))
    reply = ask(served_by(folder), "POST", "/v1/models/m:predict", {"instances": [one]}).json()
    if "error" in reply:
        raise kb.UserError(reply["error"])
    return reply["predictions"][0]


DOORS = {"predict": by_command, "Predictor": by_python, "server": by_server}


@pytest.mark.parametrize("door", DOORS)
def test_entities_are_asked_of_text_as_people_write_it(door, tmp_path):
    folder = write_tagger(tmp_path / "model", ["B-LOC", "I-LOC"])  # every word is one
    assert "runs." not in DOORS[door](folder, SENTENCE)["text"]


def test_the_page_and_a_saved_model_ask_the_same_first(tmp_path):
    folder = write_tagger(tmp_path / "model", ["B-LOC", "I-LOC"])
    shown = ask(served_by(folder), "GET", "/playground/models").json()["models"][0]
    _, served = open_and_serve(folder)
    assert [one.name for one in served.text_signatures()] == ["raw_text"]
    assert shown["signatures"][0]["signature"] == "raw_text"


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("texts", [1, 2, None])
def test_pairs_and_single_texts_are_answered_as_they_were_trained_on(door, texts, tmp_path):
    folder = write_classifier(tmp_path / "model", ["no", "yes"])
    keep_task_settings(folder, {} if texts is None else {"num_texts": texts})
    for count, asked in ((1, SENTENCE), (2, PAIR)):
        if texts in (None, count):
            assert "label" in DOORS[door](folder, asked)
            continue
        wanted = "text_a and text_b" if texts == 2 else "text"
        with pytest.raises(kb.UserError, match=f"but this model is asked with {wanted}; give"):
            DOORS[door](folder, asked)


@pytest.mark.parametrize("texts", [1, 2, None])
def test_a_saved_model_has_the_signature_of_its_training(texts, tmp_path):
    folder = write_classifier(tmp_path / "model", ["no", "yes"])
    keep_task_settings(folder, {} if texts is None else {"num_texts": texts})
    _, served = open_and_serve(folder)
    signatures = {1: {"text"}, 2: {"text_pair"}, None: {"text", "text_pair"}}[texts]
    assert {*served.names} == {"serving_default", *signatures}
