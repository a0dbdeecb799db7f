"""Texts that are cut, empty ones, other columns: what every door says of them."""

import json
import logging

import pytest

import keras_bert_impl as kb
from keras_bert_impl.checkpoints.task_settings import with_task_settings
from keras_bert_impl.errors import UserError
from keras_bert_impl.models.multiple_choice import BertMultipleChoice
from keras_bert_impl.models.token_models import BertSpanLabeler
from keras_bert_impl.serving.answerer import ask as answers_to
from keras_bert_impl.serving.answerer import instances_of
from keras_bert_impl.serving.http.app import make_app
from pipelines.answering.config import AnsweringConfig, PredictConfig
from pipelines.answering.opening import open_answering_model
from pipelines.answering.predict import predict
from pipelines.answering.serving import CountingAnswerer, ServeConfig
from pipelines.vectors.embed import embed_file, embed_texts
from pipelines.vectors.options import EmbedConfig
from tests.support.asgi_client import ask
from tests.support.model_folders import (
    tiny_config,
    write_any,
    write_classifier,
    write_encoder,
    write_pretrainer,
    write_tagger,
)

LONG, SHORT = "the dog runs . " * 3 + "the", "the dog"  # 13 tokens and 2
SETTINGS = {"task": "squad", "max_query_length": 4, "doc_stride": 2, "max_seq_length": 12}
CHOICE = with_task_settings(tiny_config(), {"task": "swag", "num_choices": 2})
KINDS = {
    "label": lambda folder: write_classifier(folder, ["no", "yes"]),
    "vector": write_encoder,
    "masked_words": write_pretrainer,
    "entities": lambda folder: write_tagger(folder, ["O", "B-LOC"]),
    "answer": lambda folder: write_any(
        folder, BertSpanLabeler(with_task_settings(tiny_config(), SETTINGS))
    ),
    "choice": lambda folder: write_any(folder, BertMultipleChoice(CHOICE, 2)),
}
ASKED = {
    "answer": [(LONG, LONG), (SHORT, LONG)],
    "choice": [(LONG, ["a", "cat"]), (SHORT, ["a", "cat"])],
}
# Of rows of 12 tokens two are [CLS] and [SEP]; a pair has three such.
LEFT_OUT = {"label": 3, "vector": 3, "masked_words": 3, "entities": 0, "answer": 9, "choice": 5}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("long")
    return {kind: write(root / kind) for kind, write in KINDS.items()}


def opened(folder, **options):
    return open_answering_model(AnsweringConfig(model=str(folder), max_seq_length=12, **options))


def asked_of(kind):
    return ASKED.get(kind, [LONG, SHORT])


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_says_how_many_tokens_were_left_out(kind, folders):
    model = opened(folders[kind])
    answerer = next(iter(model.answerers.values()))
    long, short = answers_to(answerer, instances_of(answerer, asked_of(kind)))
    assert long.get("num_truncated", 0) == LEFT_OUT[kind]
    assert not short.get("num_truncated")

    app = make_app({"m": model}, kb_config())
    instances = instances_of(answerer, asked_of(kind))
    reply = ask(app, "POST", "/v1/models/m:predict", {"instances": instances}).json()
    expected = {"num_truncated": [LEFT_OUT[kind], 0]} if LEFT_OUT[kind] else {}
    assert {**reply, "predictions": 0} == {"predictions": 0, **expected}
    metadata = ask(app, "GET", "/v1/models/m/metadata").json()["metadata"]["description"]
    assert metadata["max_seq_length"] == 12


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_that_is_too_long_may_be_refused_with_both_lengths(kind, folders):
    answerer = next(iter(opened(folders[kind], long_text="refuse").answerers.values()))
    instances = instances_of(answerer, asked_of(kind))[::-1]
    if not LEFT_OUT[kind]:
        assert answers_to(answerer, instances)
        return
    most = 4 if kind == "answer" else 12
    both = f"instance 2: is a text of {most + LEFT_OUT[kind]} tokens, and the model reads {most};"
    with pytest.raises(UserError, match=both):
        answers_to(answerer, instances)


@pytest.mark.parametrize("kind", KINDS)
def test_windows_are_for_tasks_that_have_them(kind, folders):
    if kind in ("entities", "answer"):
        assert opened(folders[kind], long_text="windows").description["long_text"] == "windows"
        return
    with pytest.raises(UserError, match="has no windows; take `long_text=truncate` or"):
        opened(folders[kind], long_text="windows")


def kb_config():
    return ServeConfig(model=("x",))


def test_vectors_and_labels_in_other_forms_say_it_beside_them(folders):
    models = {kind: opened(folders[kind]) for kind in ("vector", "label")}
    app = make_app(models, kb_config())
    body = {"model": "vector", "input": [SHORT, LONG]}
    assert ask(app, "POST", "/v1/embeddings", body).json()["num_truncated"] == [0, 3]
    assert "num_truncated" not in ask(app, "POST", "/v1/embeddings", {**body, "input": "a"}).json()
    body = {"examples": [{"text": LONG}]}
    assert ask(app, "POST", "/v1/models/label:classify", body).json()["num_truncated"] == [3]
    refusing = make_app({"m": opened(folders["label"], long_text="refuse")}, kb_config())
    reply = ask(refusing, "POST", "/v1/models/m:predict", {"instances": [SHORT, LONG]})
    assert reply.status == 400
    assert "instance 2: is a text of 15 tokens, and the model reads 12" in reply.json()["error"]


def test_a_model_of_sentences_reads_what_its_own_settings_say(folders):
    kb.Embedder.from_pretrained(folders["vector"], max_seq_length=7).save_pretrained(
        folder := folders["vector"].with_name("sentences")
    )
    model = open_answering_model(AnsweringConfig(model=str(folder)))
    assert model.description["max_seq_length"] == 7


TABLE = f"id,text,stars\na7,{SHORT},5\nb8,{LONG},1\nc9,,3\n"


def test_predict_counts_what_it_left_out_and_gives_other_columns_back(folders, tmp_path, caplog):
    (tmp_path / "x.csv").write_text(TABLE)
    given = {"model": str(folders["label"]), "input_file": str(tmp_path / "x.csv")}
    given |= {"max_seq_length": 12, "output_file": str(tmp_path / "out")}
    with caplog.at_level(logging.WARNING):
        predict(PredictConfig(**given, format="json"))
    lines = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert [one["columns"] for one in lines] == [
        {"id": "a7", "stars": "5"},
        {"id": "b8", "stars": "1"},
        {"id": "c9", "stars": "3"},
    ]
    assert [one["answer"].get("num_truncated") for one in lines] == [None, 3, None]
    assert "x.csv: 1 of 3 texts are empty" in caplog.text
    assert "x.csv: 1 of 3 texts are longer than the 12 tokens that the model reads" in caplog.text
    predict(PredictConfig(**given))
    table = (tmp_path / "out").read_text()
    assert "(id: b8, stars: 1)" in table
    assert "(longer than the model reads: 3 tokens left out)" in table
    with pytest.raises(UserError, match=r"x\.csv: line 3: is a text of 15 tokens, and the model"):
        predict(PredictConfig(**given, long_text="refuse"))


def test_embed_counts_them_refuses_them_and_prints_vectors_of_texts(folders, tmp_path, caplog):
    (tmp_path / "x.txt").write_text(f"{SHORT}\n\n{LONG}\n")
    given = {"model": str(folders["vector"]), "max_seq_length": 12}
    of_file = {"input_file": str(tmp_path / "x.txt"), "output_file": tmp_path / "x.npy"}
    with caplog.at_level(logging.WARNING):
        embed_file(EmbedConfig(**given, **of_file))
    assert "x.txt: 1 of 3 texts are empty" in caplog.text
    assert "x.txt: 1 of 3 texts are longer than the 12 tokens that the model reads" in caplog.text
    with pytest.raises(UserError, match="text 3: has 15 tokens, and the model reads 12; shorten"):
        embed_file(EmbedConfig(**given, **of_file, long_text="refuse"))
    (line,) = embed_texts(EmbedConfig(**given, text=[SHORT]))
    expected = kb.Embedder.from_pretrained(folders["vector"]).embed(SHORT)[0]
    assert json.loads(line)["embedding"] == pytest.approx(expected.tolist(), abs=1e-5)
    for wrong in (
        {},
        {"text": ["a"], **of_file},
        {"text": ["a"], "output_file": tmp_path / "x.npy"},
    ):
        with pytest.raises(UserError, match="give"):
            EmbedConfig(**given, **wrong)


def test_a_server_says_at_its_end_how_many_were_cut_and_empty(folders, caplog):
    model = opened(folders["label"])
    counting = CountingAnswerer(next(iter(model.answerers.values())), model.text, "m")
    answers_to(counting, instances_of(counting, [SHORT, LONG, " "]))
    with caplog.at_level(logging.WARNING):
        counting.log_left_out()
    assert "m: 1 of 3 texts are empty" in caplog.text
    assert "m: 1 of 3 texts are longer than the 12 tokens that the model reads" in caplog.text


EMOJI = "😀 the dog 🐧🐧 runs . the cat"


@pytest.mark.parametrize("kind", ["entities", "answer"])
def test_offsets_stand_in_characters_and_in_the_units_of_javascript(kind, tmp_path):
    if kind == "entities":
        folder = write_tagger(tmp_path / "model", ["B-LOC", "I-LOC"])  # every word is one
    else:
        folder = KINDS["answer"](tmp_path / "model")
    model = open_answering_model(AnsweringConfig(model=str(folder)))
    assert "code points" in model.description["offsets"]
    for answerer in model.answerers.values():
        asked = EMOJI if kind == "entities" else ("the", EMOJI)
        (answer,) = answers_to(answerer, instances_of(answerer, [asked]))
        s = "s" if "starts" in answer else ""
        names = ("answer" if kind == "answer" else "text") + s, f"start{s}_utf16", f"end{s}_utf16"
        values = [answer[name] for name in names]
        columns = values if isinstance(values[0], list) else [[one] for one in values]
        found = list(zip(*columns, strict=True))
        assert found
        units = EMOJI.encode("utf-16-le")
        for text, start, end in found:
            assert units[2 * start : 2 * end].decode("utf-16-le") == text
