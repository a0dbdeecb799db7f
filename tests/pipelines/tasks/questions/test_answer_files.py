"""The table of answers."""

import csv
import math

from pipelines.metrics.question_answering import squad_v1_question
from pipelines.tasks.questions.answers import Candidate, Prediction
from pipelines.tasks.questions.files import Passage, PlacedText, Question
from pipelines.tasks.questions.scores import write_answer_table

PASSAGE = Passage("Rain", "It  rained\nall day.")


def row(identifier, right, start, end, score, odds=None):
    question = Question(identifier, "When?", PASSAGE, (PlacedText(right, 0), PlacedText(right, 0)))
    text = " ".join(PASSAGE.text[start:end].split())
    candidates = [Candidate(text, score, 0.0, start, end), Candidate("", 0.0, 0.0)]
    return question, Prediction(candidates, odds)


def test_the_surest_of_the_worst_mistakes_comes_first(tmp_path):
    answered = [
        row("right", "rained all", 4, 14, 1.0),
        row("half", "all day", 11, 14, 1.0),
        row("wrong", "day", 0, 2, 1.0),
        row("surely wrong", "day", 0, 10, 2.0),
    ]
    path = write_answer_table(tmp_path / "x.tsv", answered, math.inf, squad_v1_question)
    with path.open() as file:
        table = list(csv.DictReader(file, delimiter="\t"))
    assert [line["id"] for line in table] == ["surely wrong", "wrong", "half", "right"]
    assert [line["f1"] for line in table] == ["0.00", "0.00", "66.67", "100.00"]
    last = table[-1]
    assert (last["answer"], last["right_answers"]) == ("rained\nall", "rained all")
    assert PASSAGE.text[int(last["start"]) : int(last["end"])] == last["answer"]
    assert (last["article"], last["exact_match"], last["null_odds"]) == ("Rain", "100", "")
    assert 0.73 < float(last["probability"]) < 0.74  # e / (1 + e)
