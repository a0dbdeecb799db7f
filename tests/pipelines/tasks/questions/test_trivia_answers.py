"""Answers to TriviaQA's questions."""

import json

from pipelines.tasks.questions.answers import Candidate, Prediction
from pipelines.tasks.questions.files import Passage, Question
from pipelines.tasks.questions.scores import TRIVIA_PREDICTIONS
from tests.support.squad_files import question_task
from tests.support.trivia_tree import write_trivia


def answered(key, document, text, score, end=1):
    passage = Passage(document, text)
    question = Question(f"{key}--{document}", "", passage)
    return question, Prediction([Candidate(text, score, 0.0, 0, end)])


PAIRS = [
    answered("t1", "missing", "empty", 0.0, end=0),
    answered("t1", "a", "France", -3.0),
    answered("t1", "b", "Spain", -2.0),
    answered("t2", "c", "France", 1.0),
]


def test_the_surest_answer_of_all_documents_counts(tmp_path):
    tree = [("t1", "Where?", ["Spain"], {"a": "", "b": ""}), ("t2", "", ["Spain"], {"c": ""})]
    task = question_task(predict_file=write_trivia(tmp_path, tree))
    figures = task.score(PAIRS)
    assert (figures["exact_match"], figures["denominator"]) == (50.0, 2)
    *_, path = task.write(tmp_path, "predict", PAIRS)
    assert path.name == TRIVIA_PREDICTIONS
    assert json.loads(path.read_text()) == {"t1": "Spain", "t2": "France"}
    assert task.illustrate(tmp_path, "predict", PAIRS) == []


def test_a_question_without_a_document_counts_as_wrong(tmp_path):
    """As the official script counts it: nobody was asked, and nobody was right."""
    tree = [(name, "Where?", ["Spain"], {"a": ""} if name == "t1" else {}) for name in ("t1", "t3")]
    task = question_task(predict_file=write_trivia(tmp_path, tree))
    figures = task.score(PAIRS[2:3])
    assert (figures["exact_match"], figures["denominator"], figures["common"]) == (50.0, 2, 1)
