import itertools
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support.pretraining_corpus import write_vocabulary
from tools.benchmarks import tokenizer

SYLLABLES = ("ka", "lo", "mi", "ru", "ste", "pan")
WORDS = " ".join(map("".join, itertools.product(SYLLABLES, repeat=3)))
PARAGRAPHS = [f"The {WORDS} saw the hens." for _ in range(16)]
LINES = ["the fox ran home.", "A slowly hen saw Foxes", "", "the unknown word"] * 256


@pytest.mark.long
@pytest.mark.slow
def test_every_tokenizer_is_timed_and_held_to_the_reference(tmp_path):
    vocab_file = write_vocabulary(tmp_path)
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{line}\n" for line in LINES))
    command = [
        sys.executable, "-m", "tools.benchmarks.tokenizer",  # it sets TensorFlow's threads
        f"--vocab_file={vocab_file}", f"--input_file={text}", "--text_field=", "--num_lines=1024",
        "--rounds=2",
    ]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3])
    assert result.returncode == 0, result.stderr
    rows = [json.loads(row) for row in result.stdout.splitlines() if row[:1] == "{"]
    differing = {row["tokenizer"]: row["differing_lines"] for row in rows[:-1]}
    assert len(differing) == 7
    assert differing["this project"] == differing["this project, in a graph"] == 0
    speeds = {row["tokenizer"]: row["mb_per_second"] for row in rows[:-1]}
    assert len(speeds["this project"]) == 2
    assert rows[-1]["start_up_seconds"] > 0
    assert rows[-1]["mb_per_second_2 threads"] > 0


def test_a_line_that_comes_out_differently_is_counted(tmp_path):
    settings = tokenizer._settings(write_vocabulary(tmp_path), True)
    cuts = {"drops a token": (lambda lines: lines, lambda lines: [[] for _ in lines])}
    assert tokenizer.differing_lines(cuts, [["the fox", "", "a hen"]], settings) == {
        "drops a token": 2
    }


def test_a_marked_case_is_a_paragraph_and_its_sentences(tmp_path):
    path = tmp_path / "cases.txt"
    path.write_text("Dr. Ross ran. ‖ He won!\n그는 갔다.‖왔다.\n", encoding="utf-8")
    assert tokenizer.marked_cases(path) == [
        ("Dr. Ross ran. He won!", ["Dr. Ross ran.", "He won!"]),
        ("그는 갔다.왔다.", ["그는 갔다.", "왔다."]),
    ]


def test_a_case_is_right_when_all_of_its_sentences_are(capsys):
    cases = [("a. b.", ["a.", "b."]), ("Dr. a.", ["Dr. a."])]

    def split_at_periods(text):
        return [f"{part}." for part in text.split(".") if part.strip()] + [" "]

    assert tokenizer.right_cases(split_at_periods, cases, show_wrong=True) == 1
    assert capsys.readouterr().out == "    ['Dr.', 'a.']\n"


@pytest.mark.parametrize("language", ["english", "korean"])
def test_splitters_are_judged_by_the_hard_cases_and_timed(tmp_path, capsys, language):
    text = tmp_path / "text.jsonl"
    text.write_text(json.dumps({"text": "The fox ran. A hen saw it."}) + "\n")
    assert (
        tokenizer.main(["--task=sentences", f"--language={language}", f"--input_file={text}"]) == 0
    )
    rows = [json.loads(row) for row in capsys.readouterr().out.splitlines() if row[0] == "{"]
    ours, plain = rows[:2]
    assert (ours["splitter"], plain["splitter"]) == ("this project", "sentencex")
    assert ours["cases"] >= ours["right"] >= plain["right"] > 0
    assert ours["mb_per_second"] > 0


def test_tokenizers_need_a_vocabulary(capsys):
    assert tokenizer.main(["--input_file=wiki.jsonl"]) == 1
    assert "give --vocab_file" in capsys.readouterr().err


def test_words_are_counted_as_the_tokenizer_splits_them():
    counted = tokenizer.count_words(["The fox, the", "FOX"], do_lower_case=True)
    assert counted == Counter({"the": 2, "fox": 2, ",": 1})


@pytest.mark.parametrize("learn", [tokenizer.learn_bottom_up, tokenizer.learn_top_down])
def test_a_learner_gives_different_tokens_that_spell_the_words(learn):
    tokens = learn(tokenizer.count_words(PARAGRAPHS, do_lower_case=True), 100, 1000)
    assert len(set(tokens)) == len(tokens)
    assert {"[UNK]", "t", "the"} <= set(tokens)


def test_both_learners_are_judged_by_words_that_were_held_out(tmp_path, capsys):
    text = tmp_path / "text.jsonl"
    text.write_text("".join(json.dumps({"text": line}) + "\n" for line in PARAGRAPHS))
    learn = ["--task=vocabulary", "--megabytes=40"]
    assert tokenizer.main([*learn, f"--input_file={text}", "--vocab_size=100"]) == 0
    rows = [json.loads(row) for row in capsys.readouterr().out.splitlines() if row[:1] == "{"]
    assert [row["learner"] for row in rows] == ["tokenizers", "tensorflow-text"]
    assert all(row["unknown_share"] == 0 for row in rows)
