import itertools
import json
from collections import Counter

import pytest

from tools.benchmarks import vocabulary

SYLLABLES = ("ka", "lo", "mi", "ru", "ste", "pan")
WORDS = " ".join(map("".join, itertools.product(SYLLABLES, repeat=3)))
LINES = [f"The {WORDS} saw the hens." for _ in range(16)]


def test_words_are_counted_as_the_tokenizer_splits_them():
    counted = vocabulary.count_words(["The fox, the", "FOX"], do_lower_case=True)
    assert counted == Counter({"the": 2, "fox": 2, ",": 1})


@pytest.mark.parametrize("learn", [vocabulary.learn_bottom_up, vocabulary.learn_top_down])
def test_a_learner_gives_different_tokens_that_spell_the_words(learn):
    tokens = learn(vocabulary.count_words(LINES, do_lower_case=True), 100, 1000)
    assert len(set(tokens)) == len(tokens)
    assert {"[UNK]", "t", "the"} <= set(tokens)


def test_both_learners_are_judged_by_words_that_were_held_out(tmp_path, capsys):
    text = tmp_path / "text.jsonl"
    text.write_text("".join(json.dumps({"text": line}) + "\n" for line in LINES))
    assert vocabulary.main([f"--input_file={text}", "--vocab_size=100"]) == 0
    rows = [json.loads(row) for row in capsys.readouterr().out.splitlines() if row[:1] == "{"]
    assert [row["learner"] for row in rows] == ["tokenizers", "tensorflow-text"]
    assert all(row["unknown_share"] == 0 for row in rows)
