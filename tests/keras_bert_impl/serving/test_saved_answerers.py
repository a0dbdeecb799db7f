"""Signatures asked row by row: texts pass unharmed, and padding is taken off."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.answerer import ask
from keras_bert_impl.serving.saved_answerers import SavedSignature
from keras_bert_impl.tokenization.reference import as_text
from keras_bert_impl.tokenization.text_settings import TextSettings
from tests.support.model_folders import WORD_VOCABULARY


def echo(text):
    """Each text itself, and how long it is."""
    given = text.numpy()
    return {"label": given, "length": np.array([len(one.decode()) for one in given])}


NO_NUL = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"))


@given(st.lists(NO_NUL, max_size=5))  # NumPy's bytes end before a NUL, which no label has
def test_a_text_comes_back_as_it_was(texts):
    answerer = SavedSignature("text", "label", {"text": None}, ["label", "length"], echo)
    answers = ask(answerer, [{"text": text} for text in texts])
    assert answers == [{"label": as_text(text), "length": len(text)} for text in texts]


def test_what_is_padded_is_cut_off():
    def entities(text):
        names = np.array([[b"PER", b""], [b"LOC", b"PER"]])[: len(text)]
        return {"type": names, "score": np.ones([len(text), 2]), "count": np.array([1, 2])}

    answerer = SavedSignature("text", "entities", {"text": None}, ["type", "score"], entities)
    answers = ask(answerer, [{"text": "a"}, {"text": "b"}])
    assert [one["type"] for one in answers] == [["PER"], ["LOC", "PER"]]
    assert answers[0] == {"type": ["PER"], "score": [1.0], "count": 1}


def test_a_list_has_as_many_texts_as_the_model_chooses_among():
    inputs = {"context": None, "endings": 2}
    answerer = SavedSignature("text", "choice", inputs, ["ending"], lambda **_: {})
    with pytest.raises(UserError, match="instance 1: `endings` has 1 texts; this model takes 2"):
        answerer.prepare([{"context": "a", "endings": ["b"]}])


def test_a_row_has_the_tokens_of_its_texts():
    text = TextSettings(WORD_VOCABULARY)
    inputs = {"text_a": None, "text_b": None}
    answerer = SavedSignature("text_pair", "label", inputs, ["label"], echo, text)
    (row,) = answerer.prepare([{"text_a": "the dog", "text_b": "runs"}]).rows
    tokens = [WORD_VOCABULARY.tokens[number] for number in row["input_ids"]]
    assert tokens == ["[CLS]", "the", "dog", "[SEP]", "runs", "[SEP]"]
