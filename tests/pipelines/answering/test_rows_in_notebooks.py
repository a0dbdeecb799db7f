"""What a model directory keeps of its texts holds for whoever opens it: every front door's rows."""

import json
import unicodedata

import numpy as np
import pytest

import keras_bert_impl as kb
from keras_bert_impl.checkpoints.model_directory import write_model_directory
from keras_bert_impl.checkpoints.task_settings import task_settings, with_task_settings
from keras_bert_impl.serving.answerer import instances_of
from keras_bert_impl.tokenization.portable_tokenizer import client_tokenizer
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS
from pipelines.tasks.register import forms_of_task, open_and_serve
from tests.support.model_folders import tiny_config
from tests.support.tiny_bert import scatter_weights

WORDS = ["the", "The", "dog", "runs", "é", "e", "값", "한국", "ㅎ", "[", "]", "mask", "MASK", "."]
VOCABULARY = kb.Vocabulary([*SPECIAL_TOKENS, *WORDS, *(f"##{one}" for one in WORDS)])
DECOMPOSED = unicodedata.normalize("NFD", "한국 값 é the")
TEXTS = ["The dog runs .", "the [MASK] dog", DECOMPOSED, " ".join(["dog the runs"] * 9), "dog " * 9]

# What each directory says beside the vocabulary: of its texts, of its task, in other files.
KEPT = {
    "both ends": {"task": {"max_seq_length": 9, "long_text": "head_tail"}},
    "special tokens": {"task": {"max_seq_length": 16, "special_tokens": "keep"}},
    "composed text in lower case": {"text": {"strip_accents": False, "unicode_form": "nfc"}},
    "a tokenizer that truncates": {
        "files": {"tokenizer_config.json": {"do_lower_case": True, "model_max_length": 7}}
    },
    "sentences": {
        "text": {"do_lower_case": False},
        "files": {"sentence_bert_config.json": {"max_seq_length": 8, "do_lower_case": True}},
    },
    "numbers": {"task": {"max_seq_length": 9, "label_units": [1e6, 1.0]}, "labels": 1},
    "pairs": {"task": {"max_seq_length": 9, "num_texts": 2, "long_text": "head_tail"}},
}


def write(folder, text=None, task=None, files=None, labels=2):
    config = tiny_config(vocab_size=len(VOCABULARY), max_position_embeddings=40)
    model = kb.BertClassifier(with_task_settings(config, task or {}), labels)
    settings = kb.TextSettings(VOCABULARY, **text or {})
    write_model_directory(folder, scatter_weights(model), settings)
    for name, values in (files or {}).items():
        (folder / name).write_text(json.dumps(values))
    return str(folder)


def rows_of(inputs):
    """The ids of each row without padding."""
    pairs = zip(*(np.array(inputs[name]) for name in ("input_ids", "input_mask")), strict=True)
    return [ids[mask > 0].tolist() for ids, mask in pairs]


@pytest.mark.parametrize("case", KEPT)
def test_every_front_door_makes_the_rows_of_the_answers(tmp_path, case):
    model = write(tmp_path / "model", **KEPT[case])
    asked = [*zip(TEXTS, TEXTS[::-1], strict=True)] if case == "pairs" else TEXTS
    source = kb.open_model(model).source
    form = forms_of_task(source)[0]
    prepared = form.prepare(instances_of(form, asked)).rows
    expected = [row["input_ids"].tolist() for row in prepared]

    preprocessor = kb.BertPreprocessor.from_pretrained(model)
    assert rows_of(preprocessor(asked)) == expected
    tokenizer = kb.Tokenizer.from_pretrained(model)
    assert rows_of(tokenizer(asked)) == expected
    copied = kb.BertPreprocessor.from_config(preprocessor.get_config())
    assert rows_of(copied(asked)) == expected

    answers = kb.Predictor.from_pretrained(model)(asked)
    opened = kb.BertClassifier.from_pretrained(model)
    logits = np.array(opened(dict(preprocessor(asked)))["logits"])
    if case == "numbers":
        assert [answer["score"] for answer in answers] == pytest.approx(logits[:, 0], abs=0.1)
    else:
        found = np.array([answer["logits"] for answer in answers])
        np.testing.assert_allclose(found, logits, atol=1e-5)

    # What was opened and is written again keeps the same.
    for name, how in (("plain", None), ("layer", preprocessor), ("tokenizer", tokenizer)):
        opened.save_pretrained(tmp_path / name, how)
        again = kb.open_model(tmp_path / name).source
        assert rows_of(kb.BertPreprocessor.from_pretrained(tmp_path / name)(asked)) == expected
        assert again.text == source.text
        assert task_settings(again.config).items() >= task_settings(source.config).items()


@pytest.mark.parametrize("case", ["both ends", "composed text in lower case"])
def test_a_graph_and_a_client_make_them_too(tmp_path, case):
    model = write(tmp_path / "model", **KEPT[case])
    expected = kb.Predictor.from_pretrained(model)(TEXTS)
    opened, served = open_and_serve(model)
    found = served.call("text", {"text": TEXTS})["logits"]
    np.testing.assert_allclose(found, [answer["logits"] for answer in expected], atol=1e-5)
    if case != "both ends":  # a client refuses longer texts
        rows = client_tokenizer(opened.text, 40, keeps_special_tokens=False).encode_batch(TEXTS)
        expected = rows_of(kb.Tokenizer.from_pretrained(model)(TEXTS))
        found = {"input_ids": [r.ids for r in rows], "input_mask": [r.attention_mask for r in rows]}
        assert rows_of(found) == expected


def test_what_is_given_wins(tmp_path):
    model = write(tmp_path / "model", task={"max_seq_length": 9, "long_text": "head_tail"})
    given = {"max_seq_length": 6, "long_text": "truncate"}
    text = "dog the runs dog dog dog dog dog ."
    for packed in (
        kb.BertPreprocessor.from_pretrained(model, **given)([text]),
        kb.Tokenizer.from_pretrained(model, **given)([text]),
        kb.Tokenizer.from_pretrained(model, long_text="truncate")([text], max_seq_length=6),
    ):
        assert rows_of(packed) == [[2, *map(VOCABULARY.id_of, ["dog", "the", "runs", "dog"]), 3]]


def test_windows_are_refused_where_a_text_has_one_row(tmp_path):
    model = write(tmp_path / "model", task={"max_seq_length": 9, "long_text": "windows"})
    with pytest.raises(kb.UserError, match=r"`long_text=windows`: this layer .*; ask `Predictor`"):
        kb.BertPreprocessor.from_pretrained(model)
    tokenizer = kb.Tokenizer.from_pretrained(model)
    assert tokenizer.tokenize("The dog") == ["the", "dog"]
    with pytest.raises(kb.UserError, match=r"text 1 has 11 tokens, .* more than 9 in windows"):
        tokenizer(["the dog", "dog " * 9])
    # Given another way, the model that is written has it, and no windows.
    preprocessor = kb.BertPreprocessor.from_pretrained(model, long_text="truncate")
    kb.BertClassifier.from_pretrained(model).save_pretrained(tmp_path / "short", preprocessor)
    kept = task_settings(kb.open_model(tmp_path / "short").source.config)
    assert kept == {"max_seq_length": 9}


def test_a_number_is_told_with_the_range_of_those_that_were_learned_from(tmp_path):
    model = write(tmp_path / "model", task={"label_units": [3.0, 0.5]}, labels=1)
    assert kb.Predictor.from_pretrained(model).description["range"] == [2.0, 4.0]
