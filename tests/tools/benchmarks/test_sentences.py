import json

import pytest

from tools.benchmarks import sentences


def test_a_marked_case_is_a_paragraph_and_its_sentences(tmp_path):
    path = tmp_path / "cases.txt"
    path.write_text("Dr. Ross ran. ‖ He won!\n그는 갔다.‖왔다.\n", encoding="utf-8")
    assert sentences.marked_cases(path) == [
        ("Dr. Ross ran. He won!", ["Dr. Ross ran.", "He won!"]),
        ("그는 갔다.왔다.", ["그는 갔다.", "왔다."]),
    ]


def test_a_case_is_right_when_all_of_its_sentences_are(capsys):
    cases = [("a. b.", ["a.", "b."]), ("Dr. a.", ["Dr. a."])]

    def split_at_periods(text):
        return [f"{part}." for part in text.split(".") if part.strip()] + [" "]

    assert sentences.right_cases(split_at_periods, cases, show_wrong=True) == 1
    assert capsys.readouterr().out == "    ['Dr.', 'a.']\n"


@pytest.mark.parametrize("language", ["english", "korean"])
def test_splitters_are_judged_by_the_hard_cases_and_timed(tmp_path, capsys, language):
    text = tmp_path / "text.jsonl"
    text.write_text(json.dumps({"text": "The fox ran. A hen saw it."}) + "\n")
    assert sentences.main([f"--language={language}", f"--input_file={text}"]) == 0
    rows = [json.loads(row) for row in capsys.readouterr().out.splitlines() if row[0] == "{"]
    ours, plain = rows[:2]
    assert (ours["splitter"], plain["splitter"]) == ("this project", "sentencex")
    assert ours["cases"] >= ours["right"] >= plain["right"] > 0
    assert ours["mb_per_second"] > 0
