import numpy as np

from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from pipelines.tasks.text_rows import TextExample, text_rows
from tests.support.model_folders import WORD_VOCABULARY

TOKENIZER = Tokenizer(TextSettings(WORD_VOCABULARY))


def features(*examples, length=8):
    texts = [TextExample(str(n), *e) for n, e in enumerate(examples)]
    return text_rows(texts, TOKENIZER, length).padded(length)


def test_single_texts_and_pairs_become_padded_rows():
    found = features(("The dog.",), ("the dog", "runs"))
    assert found["input_ids"].tolist() == [[2, 5, 6, 13, 3, 0, 0, 0], [2, 5, 6, 3, 8, 3, 0, 0]]
    assert found["input_mask"].tolist() == [[1, 1, 1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1, 0, 0]]
    assert found["segment_ids"].tolist() == [[0] * 8, [0, 0, 0, 0, 1, 1, 0, 0]]
    assert {array.dtype for array in found.values()} == {np.dtype(np.int32)}


def test_a_second_text_without_tokens_counts_as_none():
    found = features(("the dog", ""), ("the dog", "  "), ("the dog",))
    assert found["input_ids"].tolist() == [[2, 5, 6, 3, 0, 0, 0, 0]] * 3


def test_the_longer_text_of_a_pair_is_cut_first():
    found = features(("the dog", "a list a list a list"), length=8)
    assert found["input_ids"].tolist() == [[2, 5, 6, 3, 10, 11, 10, 3]]


def test_many_examples_keep_their_order():
    words = ["the", "dog", "cat", "runs", "sleeps", "a", "list"]
    found = features(*((word,) for word in words), length=3)
    assert found["input_ids"][:, 1].tolist() == [5, 6, 7, 8, 9, 10, 11]
