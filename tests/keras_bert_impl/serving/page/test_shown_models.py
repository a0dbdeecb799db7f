import gc
import weakref

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.serving.answerer import Prepared
from keras_bert_impl.serving.page.routes import rows_of, show_model
from keras_bert_impl.tokenization.packing import ENCODER_INPUTS
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support.model_folders import WORD_VOCABULARY
from tests.support.toy_page import MODELS

MODEL = MODELS["label"]
ANSWERER = MODEL.answerers["text"]


@pytest.fixture
def export(tmp_path):
    """A folder with a vocabulary and without weights."""
    WORD_VOCABULARY.write(tmp_path / "vocab.txt")
    (tmp_path / "model.xml").write_text("<net/>")
    return tmp_path


def test_an_export_has_tokens_and_says_why_it_has_no_attention(export):
    shown = show_model(export, MODEL)
    reason = shown.description("name")["attention"]
    assert reason.startswith("This export gives its outputs and not its attention; ")
    assert str(export) not in reason
    with pytest.raises(UserError, match="not its attention"):
        shown.attend(ANSWERER, {"text": "the dog"})
    assert shown.tokens(ANSWERER, {"text": "the dog"})["rows"][0]["tokens"][0] == "[CLS]"


def test_of_a_model_that_is_shown_no_more_nothing_is_kept(export):
    Vocabulary([*SPECIAL_TOKENS, "once"]).write(export / "vocab.txt")
    shown = show_model(export, MODEL)
    assert shown.description("name")["scripts"] == {"LATIN": 1.0}
    kept = weakref.ref(shown.vocabulary)
    del shown
    gc.collect()
    assert kept() is None


def test_without_a_vocabulary_tokens_have_no_names(tmp_path):
    with pytest.raises(UserError, match="no vocabulary"):
        show_model(tmp_path, MODEL).tokens(ANSWERER, {"text": "the dog"})


class Choices:
    def prepare(self, instances):
        ids = np.array([[2, 5, 3, 0], [2, 5, 6, 3]], np.int32)
        row = {"input_ids": ids, "input_mask": (ids > 0) * 1, "segment_ids": ids * 0}
        return Prepared([row])


def test_choices_are_shown_one_by_one_without_padding():
    rows = list(rows_of(Choices(), {}))
    assert [row["input_ids"].tolist() for row in rows] == [[2, 5, 3], [2, 5, 6, 3]]


def test_a_row_of_no_token_is_shown_as_that():
    class Nothing:
        def prepare(self, instances):
            return Prepared([dict.fromkeys(ENCODER_INPUTS, np.zeros(0, np.int32))])

    (row,) = rows_of(Nothing(), {})
    assert row["input_ids"].tolist() == []
