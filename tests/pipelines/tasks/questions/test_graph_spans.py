"""Spans chosen inside a graph, held to those that are chosen for files."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.tokenization.preprocessor import GraphTokenizer
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from pipelines.tasks.questions.answers import find_best_spans, find_null_logits
from pipelines.tasks.questions.rows import WindowSettings, question_rows
from pipelines.tasks.questions.served import (
    best_spans_in_graph,
    null_scores_in_graph,
    pack_questions,
)
from tests.support.plain_passages import VOCABULARY, make_questions

SETTINGS = WindowSettings(max_seq_length=20, doc_stride=4, max_query_length=6)
TEXT = TextSettings(VOCABULARY)


@pytest.mark.parametrize(("values", "n_best_size"), [(3, 5), (1000, 30)])
def test_spans_and_null_scores_are_those_of_files(values, n_best_size):
    questions = make_questions(40, seed=values)
    tokenizer = GraphTokenizer(TEXT, with_spans=True)
    rows = pack_questions(
        *(tokenizer, VOCABULARY, SETTINGS),
        tf.constant([question.text for question in questions]),
        tf.constant([question.passage.text for question in questions]),
    )
    offline = question_rows(questions, Tokenizer(TEXT), SETTINGS, training=False)
    draw, shape = np.random.default_rng(1), rows.inputs[0].shape
    logits = [draw.integers(values, size=shape).astype(np.float32) for _ in range(2)]
    padding = rows.inputs[1].numpy() == 0
    masked = [np.where(padding, -np.inf, array) for array in logits]
    wanted = find_best_spans(offline, *masked, n_best_size, max_answer_length=5)
    found = best_spans_in_graph(rows, *map(tf.constant, logits), n_best_size, 5)
    begins = offline.offsets()[wanted.row]
    starts = offline.tokens["text_start"][begins + wanted.first]
    ends = offline.tokens["text_end"][begins + wanted.last]
    for number, question in enumerate(questions):
        span = slice(*wanted.offsets[number : number + 2])
        own = found.question.numpy() == number
        text = question.passage.text
        places = [
            (len(text[:start].encode()), len(text[:end].encode()))
            for start, end in zip(starts[span], ends[span], strict=True)
        ]
        count = min(n_best_size, len(places))
        there = list(zip(found.start.numpy()[own], found.end.numpy()[own], strict=True))
        assert there == places[:count]
        scores = (wanted.start_logit + wanted.end_logit)[span]
        assert found.score.numpy()[own].tolist() == scores[:count].tolist()
    null = find_null_logits(offline, *masked)
    np.testing.assert_array_equal(
        null_scores_in_graph(rows, *map(tf.constant, logits)), null.sum(axis=0)
    )
