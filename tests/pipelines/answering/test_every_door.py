"""One model asked at every door: the same default, the same refusal, the same answer."""

import base64
import io
import json
from contextlib import redirect_stdout

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import keras_bert_impl as kb
from keras_bert_impl.checkpoints.task_settings import keep_task_settings, with_task_settings
from keras_bert_impl.serving.http.app import make_app
from pipelines.answering.config import AnsweringConfig, PredictConfig
from pipelines.answering.opening import open_answering_model
from pipelines.answering.predict import predict
from pipelines.answering.serving import ServeConfig, page_of, show
from pipelines.tasks.register import open_and_serve
from tests.support.asgi_client import ask
from tests.support.model_folders import (
    WORD_VOCABULARY,
    tiny_config,
    write_any,
    write_chooser,
    write_classifier,
    write_encoder,
    write_pretrainer,
    write_prompted,
    write_tagger,
)
from tests.support.written_weights import rewrite
from tools import (
    answer,
    convert_checkpoint,
    embed,
    explain,
    export_model,
    export_saved_model,
    extract_features,
    fill_mask,
    grow_vocabulary,
)
from tools import predict as predict_tool

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


def served_by(folder, **how):
    answering = AnsweringConfig(model="", **how)
    config = ServeConfig(model=(f"m={folder}",), answering=answering)
    models = {name: open_answering_model(how) for name, how in config.models().items()}
    return make_app(
        models, config, **page_of({name: show(model) for name, model in models.items()})
    )


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
@pytest.mark.parametrize("texts", [1, 2])
def test_pairs_and_single_texts_are_answered_as_they_were_trained_on(door, texts, tmp_path):
    folder = write_classifier(tmp_path / "model", ["no", "yes"])
    keep_task_settings(folder, {"num_texts": texts})
    for count, asked in ((1, SENTENCE), (2, PAIR)):
        if texts == count:
            assert "label" in DOORS[door](folder, asked)
            continue
        wanted = "text_a and text_b" if texts == 2 else "text"
        with pytest.raises(kb.UserError, match=f"but this model is asked with {wanted}; give"):
            DOORS[door](folder, asked)


@pytest.mark.parametrize("door", DOORS)
def test_a_model_of_one_segment_is_asked_of_single_texts(door, tmp_path):
    folder = write_classifier(tmp_path / "model", ["no", "yes"], type_vocab_size=1)
    assert "label" in DOORS[door](folder, SENTENCE)
    with pytest.raises(kb.UserError, match=r"type_vocab_size is 1: .* give no pairs, or name"):
        DOORS[door](folder, PAIR)


@pytest.mark.parametrize("door", [*DOORS.values(), lambda folder, _: open_and_serve(folder)])
@pytest.mark.parametrize(
    ("lost", "said"),
    [
        ("bert.pooler", r"holds no trained model \(its .* is missing\); name"),
        ("classifier.bias", "holds a head without its classifier/dense/bias; download"),
    ],
)
def test_no_door_answers_by_weights_that_are_not_there(door, lost, said, tmp_path):
    folder = write_classifier(tmp_path / "model", ["no", "yes"])
    rewrite(folder, lambda t: {name: array for name, array in t.items() if lost not in name})
    with pytest.raises(kb.UserError, match=said):
        door(folder, SENTENCE)


@pytest.mark.parametrize("door", DOORS)
def test_a_chooser_without_its_pooler_is_refused(door, tmp_path):
    folder = write_chooser(tmp_path / "model")
    rewrite(folder, lambda t: {name: array for name, array in t.items() if "pooler" not in name})
    with pytest.raises(kb.UserError, match=r"no trained model for swag \(its pooler/"):
        DOORS[door](folder, SENTENCE)


@pytest.mark.parametrize("texts", [1, 2, None])
def test_a_saved_model_has_the_signature_of_its_training(texts, tmp_path):
    folder = write_classifier(tmp_path / "model", ["no", "yes"])
    keep_task_settings(folder, {} if texts is None else {"num_texts": texts})
    _, served = open_and_serve(folder)
    signatures = {1: {"text"}, 2: {"text_pair"}, None: {"text", "text_pair"}}[texts]
    assert {*served.specs} == {"serving_default", *signatures}


QUERY_OF_8 = {"input_type": "query", "dimensions": 8}


def vectors_by_embed(folder, texts):
    (folder / "lines.txt").write_text("\n".join(texts))
    flags = [f"--model={folder}", f"--input_file={folder}/lines.txt", "--dimensions=8"]
    embed.main([*flags, "--prompt_name=query", f"--output_file={folder}/x.npy"])
    return np.load(folder / "x.npy")


def vectors_by_predict(folder, texts):
    instances = [{"text": one, **QUERY_OF_8} for one in texts]
    return vectors_from(folder, "/v1/models/m:predict", instances=instances)["predictions"]


def vectors_by_embeddings(folder, texts):
    found = vectors_from(folder, "/v1/embeddings", model="m", input=texts, **QUERY_OF_8)
    return [one["embedding"] for one in found["data"]]


def vectors_from(folder, path, **body):
    return ask(served_by(folder), "POST", path, body).json()


def vectors_of_an_export(folder, texts):
    pytest.importorskip("openvino", reason="needs the extra `openvino`")
    flags = ["--format=openvino", "--noverify"]
    export_model.main([f"--model={folder}", f"--output_dir={folder}/out", *flags])
    return vectors_by_embeddings(folder / "out", texts)


@pytest.mark.parametrize(
    "door", [vectors_by_embed, vectors_by_predict, vectors_by_embeddings, vectors_of_an_export]
)
def test_a_prompt_and_a_size_give_the_same_vectors_at_every_door(door, tmp_path):
    folder, texts = write_prompted(tmp_path / "model"), ["the dog runs .", "a cat", "dog " * 20]
    expected = kb.Embedder.from_pretrained(folder).embed(texts, "query", dimensions=8)
    np.testing.assert_allclose(door(folder, texts), expected, atol=5e-6)


def test_a_server_gives_the_sizes_of_the_training_or_any_it_was_told_to(tmp_path):
    folder = write_prompted(tmp_path / "model")
    asked = {"model": "m", "input": "a cat", "dimensions": 3}
    refused = ask(served_by(folder), "POST", "/v1/embeddings", asked)
    assert refused.status == 400
    assert "vectors have 16 or 8 or 4 numbers" in refused.json()["error"]["message"]
    anyway = served_by(folder, truncate_anyway=True)
    (found,) = ask(anyway, "POST", "/v1/embeddings", asked).json()["data"]
    expected = kb.Embedder.from_pretrained(folder).embed("a cat", dimensions=3)[0]
    np.testing.assert_allclose(found["embedding"], expected, atol=5e-6)
    bits = {**asked, "dimensions": 16, "vector_type": "ubinary", "encoding_format": "base64"}
    (found,) = ask(anyway, "POST", "/v1/embeddings", bits).json()["data"]
    whole = kb.Embedder.from_pretrained(folder).embed("a cat")
    assert base64.b64decode(found["embedding"]) == np.packbits(whole > 0).tobytes()
    unknown = ask(anyway, "POST", "/v1/embeddings", {**asked, "input_type": "title"})
    assert unknown.status == 400
    assert "no prompt 'title'; choose query, " in unknown.json()["error"]["message"]


def with_nan(write, folder, *more, word="cat"):
    """A model whose embedding of one word is NaN: what has that word has no answer."""
    path = write(folder, *more) / "model.safetensors"
    tensors = load_file(path)
    name = next(name for name in tensors if name.endswith("word_embeddings.weight"))
    tensors[name][WORD_VOCABULARY.id_of(word)] = np.nan
    save_file(tensors, path)
    return folder


CAT, DOG = "a cat sleeps", "the dog runs"


@pytest.mark.parametrize("door", DOORS)
def test_a_text_whose_numbers_are_not_finite_is_refused_and_others_are_answered(door, tmp_path):
    folder = with_nan(write_classifier, tmp_path / "model", ["no", "yes"])
    assert "label" in DOORS[door](folder, DOG)
    with pytest.raises(kb.UserError, match=r"NaN or infinite|numbers are not finite"):
        DOORS[door](folder, CAT)


def write_questions(folder):
    return write_any(
        folder, kb.BertSpanLabeler(with_task_settings(tiny_config(), {"task": "squad"}))
    )


def vectors_of(tool, name, *more):
    def run(folder, text):
        (folder / "lines.txt").write_text(f"{text}\n")
        flags = [f"--model={folder}", f"--input_file={folder}/lines.txt", *more]
        return tool.main([*flags, f"--output_file={folder}/{name}"])

    return run


def by_answer(folder, text):
    (folder / "passage.txt").write_text(text)
    return answer.main(
        [f"--model={folder}", "--question=the", f"--passage_file={folder}/passage.txt"]
    )


def by_explain(folder, text):
    return explain.main([f"--model={folder}", f"--text={text}", f"--output_file={folder}/x.html"])


_SMALL = ("--layers=-1", "--max_seq_length=12")
TOOLS = {
    "predict": (
        lambda folder: write_classifier(folder, ["no", "yes"]),
        lambda folder, text: predict_tool.main([f"--model={folder}", f"--text={text}"]),
    ),
    "fill_mask": (
        write_pretrainer,
        lambda folder, text: fill_mask.main([f"--model={folder}", f"--text={text} [MASK]"]),
    ),
    "answer": (write_questions, by_answer),
    "embed": (write_encoder, vectors_of(embed, "vectors.npy")),
    "extract_features": (write_encoder, vectors_of(extract_features, "x.jsonl", *_SMALL)),
    "explain": (write_encoder, by_explain),
}


@pytest.mark.parametrize("name", TOOLS)
def test_no_tool_hands_out_numbers_that_are_not_finite(name, tmp_path, capsys):
    write, run = TOOLS[name]
    folder = with_nan(write, tmp_path / "model")
    assert run(folder, CAT) == 1
    error = capsys.readouterr().err
    assert f"{folder}: its " in error
    assert "NaN or infinite" in error
    assert "Traceback" not in error
    if name != "fill_mask":  # whose scores of all words are made with that embedding
        assert run(folder, DOG) == 0


WRITERS = {
    "export_model": lambda folder, to: export_model.main(
        [f"--model={folder}", f"--output_dir={to}", "--format=openvino"]
    ),
    "export_saved_model": lambda folder, to: export_saved_model.main(
        [f"--model={folder}", f"--output_dir={to}"]
    ),
    "convert_checkpoint": lambda folder, to: convert_checkpoint.main(
        [f"--input={folder}", f"--output={to}"]
    ),
    "convert_checkpoint to google's": lambda folder, to: convert_checkpoint.main(
        [f"--input={folder}", f"--output={to}/bert_model.ckpt"]
    ),
    "grow_vocabulary": lambda folder, to: grow_vocabulary.main(
        [f"--input={folder}", f"--output={to}", "--words=stent"]
    ),
}


@pytest.mark.parametrize("name", WRITERS)
def test_weights_that_are_not_finite_are_written_in_no_other_form(name, tmp_path, capsys):
    folder = with_nan(write_encoder, tmp_path / "model")
    assert WRITERS[name](folder, tmp_path / "to") == 1
    error = capsys.readouterr().err
    assert f"{folder}: its weights " in error
    assert "token_embeddings hold NaN" in error
    assert not (tmp_path / "to").exists()


def test_python_gets_no_vectors_that_are_not_finite(tmp_path):
    embedder = kb.Embedder.from_pretrained(with_nan(write_encoder, tmp_path / "model"))
    assert embedder.embed([DOG]).shape == (1, 16)
    with pytest.raises(kb.UserError, match="its vectors are NaN or infinite"):
        embedder.embed([DOG, CAT])


@pytest.mark.parametrize("texts", [1, 2])
def test_the_page_and_classify_refuse_what_predict_refuses(texts, tmp_path):
    folder = write_classifier(tmp_path / "model", ["no", "yes"])
    keep_task_settings(folder, {"num_texts": texts})
    app = served_by(folder)
    of_texts = {1: {"text": SENTENCE}, 2: dict(zip(("text_a", "text_b"), PAIR, strict=True))}
    wanted = "text_a and text_b" if texts == 2 else "text"
    for path, entry in (
        ("/v1/models/m:classify", "examples"),
        ("/v1/models/m:predict", "instances"),
        ("/playground/models/m/tokens", "instances"),
    ):
        assert ask(app, "POST", path, {entry: [of_texts[texts]]}).status == 200
        reply = ask(app, "POST", path, {entry: [of_texts[3 - texts]]})
        assert reply.status == 400
        assert f"but this model is asked with {wanted}; give" in reply.json()["error"]
