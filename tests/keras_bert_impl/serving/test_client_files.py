"""The tokenizer of plain clients, and the labels and thresholds beside it."""

import dataclasses
import json

import numpy as np
import pytest

from keras_bert_impl.serving.clients import client_tokenizer, label_settings
from keras_bert_impl.serving.opened_model import open_model
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support.model_folders import WORD_VOCABULARY, write_classifier

LONG_WORD = "ab" * 75  # more than the 100 characters at which other tokenizers give up
CASED = TextSettings(Vocabulary([*SPECIAL_TOKENS, "The", "a", "##b", "##a", "é", "[", "]"]), False)
TEXTS = [
    "The dog runs , a list .",
    "",
    f"a {LONG_WORD}",
    "a [MASK] dog [SEP]",
    "É cafés",
    "the cat sleeps " * 20,
]
PAIRS = [("the dog", "a cat runs ."), ("the dog runs , " * 9, "a cat"), ("a", "the cat . " * 9)]


@pytest.mark.parametrize("text", [TextSettings(WORD_VOCABULARY), CASED])
@pytest.mark.parametrize("special_tokens", ["split", "keep"])
@pytest.mark.parametrize("texts", [TEXTS, PAIRS])
def test_the_clients_rows_are_those_of_the_tokenizer(text, special_tokens, texts):
    expected = Tokenizer(text, special_tokens)(texts, max_seq_length=16)
    rows = client_tokenizer(text, 16, special_tokens == "keep").encode_batch(texts)
    found = {
        "input_ids": [row.ids for row in rows],
        "input_mask": [row.attention_mask for row in rows],
        "segment_ids": [row.type_ids for row in rows],
    }
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


def test_labels_and_thresholds_are_said(tmp_path):
    folder = write_classifier(tmp_path / "model", ["rude", "loud"])
    opened = open_model(folder)
    assert label_settings(opened) == {"labels": ["rude", "loud"]}
    extra = {
        **opened.source.config.extra,
        "problem_type": "multi_label_classification",
        "task_specific_params": {"keras_bert_impl": {"null_score_diff_threshold": -1.5}},
    }
    config = opened.source.config.replace(extra=extra)
    changed = dataclasses.replace(opened, source=dataclasses.replace(opened.source, config=config))
    assert json.loads(json.dumps(label_settings(changed))) == {
        "labels": ["rude", "loud"],
        "threshold": 0.5,
        "null_score_diff_threshold": -1.5,
    }


def test_a_number_has_no_labels(tmp_path):
    assert label_settings(open_model(write_classifier(tmp_path / "model", ["score"]))) == {}
