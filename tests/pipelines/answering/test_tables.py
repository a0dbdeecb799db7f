"""Answers of each kind as lines that people read."""

from types import SimpleNamespace

import pytest

from keras_bert_impl.serving.answerer import Input
from pipelines.answering.predict import table_of

PASSAGE = {"question": "q", "passage": "a\nbc"}
BEST = {"answers": ["bc"], "starts": [2], "ends": [4], "scores": [1.5]}


@pytest.mark.parametrize(
    ("kind", "instance", "answer", "lines"),
    [
        ("label", {}, {"label": "x", "probabilities": [0.5, 0.25, 0.25]}, ["50.00%  x"]),
        ("labels", {}, {"labels": [], "probabilities": [0.25, 0.25]}, ["no label"]),
        ("number", {}, {"score": 1000001.0}, ["1000001"]),
        ("answer", PASSAGE, {"answer": "bc", "start": 2, "end": 4}, ["bc  (characters 2-4)"]),
        (
            *("answer", PASSAGE, {**BEST, "has_answer": False}),
            ["no answer; the best guesses:", "1.50  bc  (line 2, characters 2-4)"],
        ),
        (
            *("entities", {}, {"type": ["P"], "text": ["x"], "start": [1], "end": [2]}),
            ["50.00%  P  x  (characters 1-2)"],
        ),
        ("choice", {"endings": ["x", "y"]}, {"probabilities": [0.25, 0.75]}, None),
        ("masked_words", {}, {"tokens": [], "probabilities": [], "mask_counts": 0}, ["no [MASK]"]),
        ("vector", {}, {"embedding": [0.5] * 8}, None),
    ],
)
def test_an_answer_is_a_few_lines(kind, instance, answer, lines):
    asked = SimpleNamespace(kind=kind, inputs=[Input("text")])
    if kind == "entities":
        answer = {**answer, "score": [0.5], "count": 1}
    instance = {"text": "the\ttext", **instance}
    first, *found = table_of(asked, ["a", "b"], instance, answer).splitlines()
    assert first == "the text"
    assert found
    if lines is not None:
        assert [line.strip() for line in found] == lines
