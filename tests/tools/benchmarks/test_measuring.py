"""What the benchmarks share."""

import pytest

from keras_bert_impl.errors import UserError
from tools.benchmarks.measuring import LeftOutError, in_child, in_turns, spread_texts


def test_who_fails_takes_no_further_turns(capsys):
    asked = []

    def fails():
        asked.append("fails")
        if len(asked) > 2:
            raise LeftOutError("it is tired")
        return 1

    def works():
        asked.append("works")
        return 2

    assert in_turns({"fails": fails, "works": works}, 3) == {"fails": [1], "works": [2, 2, 2]}
    assert asked == ["fails", "works", "fails", "works", "works"]
    assert capsys.readouterr().err.count("fails is left out: it is tired\n") == 1


def test_a_child_that_fails_gives_its_reason():
    with pytest.raises(LeftOutError, match=r"No module named tools\.benchmarks\.none"):
        in_child("tools.benchmarks.none", {})


def test_texts_are_spread_over_a_file_that_has_enough(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"text {n}\n\n" for n in range(40)))
    assert spread_texts(str(path), 20)[:3] == ["text 0", "text 2", "text 4"]
    with pytest.raises(UserError, match="has 40 texts, and 99 are asked for"):
        spread_texts(str(path), 99)
