"""SQuAD's questions in TriviaQA's layout are the same questions to whoever reads them."""

import json

from pipelines.tasks.questions.files import (
    is_trivia_file,
    read_questions,
    read_training_questions,
)
from tests.support.squad_files import write_articles
from tools.benchmarks import squad_as_trivia


def test_the_same_questions_are_read_and_the_answers_found(tmp_path, capsys):
    source = write_articles(tmp_path / "train.json", 2)
    flags = [f"--input_file={source}", f"--output_dir={tmp_path}/trivia", "--name=made"]
    assert squad_as_trivia.main(flags) == 0
    assert capsys.readouterr().out.splitlines()[0] == "16 questions, 8 documents"
    path = tmp_path / "trivia" / "qa" / "made.json"
    assert is_trivia_file(path)
    whole = list(read_questions(source, version_2_with_negative=False))
    found = list(read_training_questions(path, version_2_with_negative=False))
    assert [one.text for one in found] == [one.text for one in whole]
    assert [one.passage.text for one in found] == [one.passage.text for one in whole]
    assert [one.answers for one in found] == [one.answers for one in whole]
    assert [one.key for one in found] == [one.identifier for one in whole]


def test_the_file_has_the_published_names(tmp_path):
    source = write_articles(tmp_path / "train.json", 1)
    squad_as_trivia.main([f"--input_file={source}", f"--output_dir={tmp_path}", "--name=made"])
    content = json.loads((tmp_path / "qa" / "made.json").read_text())
    assert (content["Domain"], content["VerifiedEval"]) == ("Wikipedia", False)
    entry = content["Data"][0]
    assert set(entry["Answer"]) >= {"Aliases", "NormalizedAliases", "NormalizedValue", "Value"}
    assert entry["Answer"]["NormalizedAliases"] == ["bergen"]
    document = tmp_path / "evidence" / "wikipedia" / entry["EntityPages"][0]["Filename"]
    assert document.read_text().startswith("In Bergen")
