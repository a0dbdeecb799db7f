"""`python -m tools` and `python -m keras_bert_impl`."""

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tools import __main__ as launcher
from tools.table import tool_named


def launch(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["keras-bert", *words])
    return launcher.main()


@pytest.mark.parametrize("word", ["--help", "-h", "help"])
def test_help_lists_the_tools_and_no_other_file(monkeypatch, capsys, word):
    assert launch(monkeypatch, word) == 0
    shown = capsys.readouterr().out.split()
    assert {"run_pretraining", "split_sentences"} <= set(shown)
    assert not {"command_line", "__main__", "benchmarks"} & set(shown)


def test_every_tool_has_its_line_in_one_group(capsys):
    lines = launcher.help_text().splitlines()
    named = [line.split()[0] for line in lines if line.startswith("  ")]
    assert sorted(named) == launcher.tool_names()
    assert max(map(len, lines)) <= 100


def test_without_a_word_the_tools_are_listed_and_it_is_an_error(monkeypatch, capsys):
    assert launch(monkeypatch) == 1
    assert "split_sentences" in capsys.readouterr().out


def test_a_tool_that_is_not_there_is_one_sentence(monkeypatch, capsys):
    assert launch(monkeypatch, "os", "--path=x") == 1
    assert capsys.readouterr().err.startswith("Error: there is no tool 'os'; ")


def test_a_tool_gets_the_words_behind_its_name(monkeypatch, capsys):
    assert launch(monkeypatch, "split_sentences", "--help") == 0
    assert "--input_file" in capsys.readouterr().out


def test_the_original_scripts_keep_their_names(capsys):
    for name in ("create_pretraining_data", "extract_features", "run_classifier", "run_squad"):
        assert import_module(f"tools.{name}").main(["--nonsense"]) == 1
        assert "--nonsense is not a flag" in capsys.readouterr().err


def test_every_flag_stands_on_a_page_or_in_a_recipe():
    top = Path(launcher.__file__).parents[1]
    pages = [top / "README.md", top / "RESULTS.md", *(top / "tools" / "recipes").glob("*.cfg")]
    for room in ("docs", "keras_bert_impl", "pipelines"):
        pages += (page for page in (top / room).rglob("*.md") if "_run" not in page.parts)
    text = "\n".join(page.read_text() for page in pages)
    named = set(re.findall(r"(?:--|--no|`)(?=([a-z]\w*))", text))
    named |= {name.removeprefix("no") for name in named}  # --nodo_lower_case
    for tool in launcher.tool_names():
        help_text = tool_named(tool).flags.help_text()
        flags = set(re.findall(r"^  --(\w+)", help_text, re.M))
        assert flags - named == set(), f"flags of {tool} that no page and no recipe names"


@pytest.mark.parametrize("tool", launcher.tool_names())
def test_help_fits_two_screens_and_names_no_flag_that_means_nothing(capsys, tool):
    main = tool_named(tool).main
    assert main(["--help"]) == 0
    assert capsys.readouterr().out.count("\n") <= 110
    assert main(["--helpfull"]) == 0
    assert not {"--master", "--num_tpu_cores"} & set(capsys.readouterr().out.split())
