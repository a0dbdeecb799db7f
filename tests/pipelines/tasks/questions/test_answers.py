"""Answers chosen from logits; the recorded files hold the rest of it."""

import numpy as np
import pytest

from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.tasks.questions.answers import SURELY_NO_ANSWER, AnswerSettings, Candidate, predict
from pipelines.tasks.questions.files import Passage, Question
from pipelines.tasks.questions.rows import WindowSettings, question_rows

WORDS = ["when", "it", "rain", "##ed", "in", "may", "."]
TEXT = TextSettings(Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
TOKENIZER = Tokenizer(TEXT)
PASSAGE = "It  rained\tin\u00a0May."


def answered(start=(), end=(), *, passage=PASSAGE, negative=False, **settings):
    """Predicts for "when" with logits by position: 0 [CLS], 3 "it", 4 "rain", ...; others 0."""
    questions = [Question("x", "When", Passage("", passage))]
    rows = question_rows(questions, TOKENIZER, WindowSettings(32, 16, 4), training=False)
    logits = np.zeros((2, 1, 16), np.float32)
    for array, values in zip(logits, (start, end), strict=True):
        for position, value in dict(values).items():
            array[0, position] = value
    options = AnswerSettings(version_2_with_negative=negative, **settings)
    return predict(questions, rows, *logits, TEXT, options)[0]


def test_the_best_span_is_the_answer_in_the_originals_words_and_in_the_texts():
    best = answered({4: 5.0}, {7: 5.0}).best()
    assert best.text == "rained in\u00a0May."  # the original cannot align the no-break space
    assert PASSAGE[best.start : best.end] == "rained\tin\u00a0May"
    best = answered({3: 5.0}, {5: 5.0}).best()
    assert best.text == "It rained"
    assert PASSAGE[best.start : best.end] == "It  rained"


def test_no_answer_has_its_place_among_the_candidates():
    prediction = answered({0: 3.0, 3: 4.0}, {0: 1.0, 5: 0.5, 8: 0.25}, negative=True, n_best_size=3)
    assert [x.text for x in prediction.candidates] == ["It rained", "It rained in\u00a0May.", ""]
    assert prediction.null_odds == -0.5
    assert prediction.best().text == "It rained"
    assert prediction.best(-0.75).text == ""


def test_a_likely_null_takes_the_place_of_an_answer():
    prediction = answered({0: 3.0, 3: 1.0}, {4: 1.0}, negative=True, n_best_size=2)
    assert [bool(candidate.text) for candidate in prediction.candidates] == [False, True]
    assert prediction.best().text == ""
    assert prediction.best(3.0).text != ""


@pytest.mark.parametrize("passage", ["", "\x01", PASSAGE])
def test_without_a_possible_span_the_original_says_empty_or_fails_and_we_answer(passage):
    """Of a passage with tokens, the best starts and ends are all at [CLS]."""
    logits = {"start": {0: 1.0}, "end": {0: 1.0}, "n_best_size": 1, "passage": passage}
    prediction = answered(**logits)
    assert (prediction.candidates, prediction.null_odds) == ([Candidate("empty", 0.0, 0.0)], None)
    prediction = answered(**logits, negative=True)
    assert prediction.candidates == [Candidate("", 1.0, 1.0)]
    assert prediction.null_odds == SURELY_NO_ANSWER
    assert prediction.best().text == ""
