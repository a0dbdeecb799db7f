"""Rows made inside a graph, held to those that are made for files."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.tokenization.preprocessor import GraphTokenizer
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from pipelines.tasks.questions.rows import WindowSettings, question_rows
from pipelines.tasks.questions.served import QuestionPacker
from tests.support.plain_passages import VOCABULARY, make_questions

SETTINGS = WindowSettings(max_seq_length=20, doc_stride=4, max_query_length=6)


@pytest.mark.parametrize("lower", [False, True])
def test_rows_are_those_of_files(lower):
    text = TextSettings(VOCABULARY, lower)
    questions = make_questions(40)
    packer = QuestionPacker(GraphTokenizer(text, with_spans=True), VOCABULARY, SETTINGS)
    found = packer(
        tf.constant([question.text for question in questions]),
        tf.constant([question.passage.text for question in questions]),
    )
    wanted = question_rows(questions, Tokenizer(text), SETTINGS, training=False)
    padded = wanted.padded(int(wanted.lengths.max()))
    for array, name in zip(found.inputs, ("input_ids", "input_mask", "segment_ids"), strict=True):
        np.testing.assert_array_equal(array, padded[name], err_msg=name)
    np.testing.assert_array_equal(found.question, wanted.examples)
    shape = padded["input_ids"].shape
    positions = tf.broadcast_to(tf.range(shape[1], dtype=tf.int64), shape)
    of_passage = found.is_of_passage(positions).numpy()
    np.testing.assert_array_equal(of_passage, padded["text_end"] > 0)
    np.testing.assert_array_equal(found.is_owned(positions), padded["is_max_context"] > 0)
    rows, places = np.nonzero(of_passage)
    tokens = found.tokens(tf.constant(rows), tf.constant(places))
    starts = tf.gather(found.text_start, tokens).numpy()
    texts = [questions[number].passage.text for number in wanted.examples[rows]]
    places = padded["text_start"][rows, places].tolist()
    before = [len(text[:place].encode()) for text, place in zip(texts, places, strict=True)]
    assert starts.tolist() == before
