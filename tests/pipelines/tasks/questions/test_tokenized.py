"""Passages are tokenized once, and words know their tokens."""

import numpy as np

from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.tasks.questions.passages import Passage, Question
from pipelines.tasks.questions.rows import TokenizedPassages

VOCABULARY = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "."])
TOKENIZER = Tokenizer(TextSettings(VOCABULARY))


def tokenized(*texts_of_questions):
    passages = {text: Passage("", text) for text in texts_of_questions}
    questions = [Question("", "", passages[text]) for text in texts_of_questions]
    return TokenizedPassages.of(questions, TOKENIZER)


def test_questions_of_one_passage_share_its_tokens():
    found = tokenized("a", "a", "ab a.", "ab a.")
    assert len(found.passages) == 2
    assert found.block.ids.tolist() == [5, 5, 6, 5, 7]
    assert (found.start.tolist(), found.length.tolist()) == ([0, 0, 1, 1], [1, 1, 4, 4])


def test_words_know_their_first_and_last_token():
    found = tokenized("a", "ab a.")
    first, last = found.tokens_of_words(
        np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([0, 0, 1])
    )
    assert (first.tolist(), last.tolist()) == ([0, 1, 3], [0, 2, 4])


def test_a_word_without_a_token_lies_between_its_neighbours():
    found = tokenized("a \x01 a")
    first, last = found.tokens_of_words(np.array([0]), np.array([1]), np.array([1]))
    assert (first.tolist(), last.tolist()) == ([1], [0])
