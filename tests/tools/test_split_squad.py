"""split_squad as a user runs it."""

from tests.support.squad_files import write_articles
from tools import split_squad


def test_it_says_what_each_file_has(tmp_path, capsys):
    source = write_articles(tmp_path / "dev.json", 5)
    assert split_squad.main([f"--input_file={source}", f"--output_dir={tmp_path}/halves"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == "first.json: 2 articles, 16 questions"
    assert second == "second.json: 3 articles, 24 questions"
    assert {path.name for path in (tmp_path / "halves").iterdir()} == {"first.json", "second.json"}


def test_too_many_articles_are_named_by_the_flag(tmp_path, capsys):
    source = write_articles(tmp_path / "dev.json", 2)
    flags = [f"--input_file={source}", f"--output_dir={tmp_path}/x", "--first_articles=2"]
    assert split_squad.main(flags) == 1
    assert "lower --first_articles" in capsys.readouterr().err
