"""What the benchmarks share."""

import pytest

from tools.benchmarks.measuring import LeftOutError, Table, first_texts, in_child, in_turns


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


def test_a_row_may_lack_cells(capsys):
    table = Table({"way": "", "seconds": ".2f", "to pad": ".1%"}, first=5)
    table.row("pad", None, 0.5)
    table.row("cut", 2)
    assert capsys.readouterr().out.splitlines() == [
        "way     seconds    to pad",
        "pad                 50.0%",
        "cut        2.00",
    ]


def test_so_many_characters_are_read(tmp_path):
    path = tmp_path / "text.jsonl"
    path.write_text('{"text": "one two"}\n{"text": "three"}\n{"text": "four"}\n')
    assert first_texts([str(path)], 12e-6) == ["one two", "three"]
