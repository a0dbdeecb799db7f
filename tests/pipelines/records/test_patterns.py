from pathlib import Path

import pytest

from pipelines.records.patterns import match_files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("a.txt", "b.txt", "in/c.txt", ".a.txt.17.incomplete", ".work/d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*", ["a.txt", "b.txt", "in"]),
        ("*.txt*", ["a.txt", "b.txt"]),
        ("**.txt", ["a.txt", "b.txt"]),
        ("**/*.txt", ["a.txt", "b.txt", "in/c.txt"]),
        ("?.txt", ["a.txt", "b.txt"]),
        ("[b].txt", ["b.txt"]),
        (".work/*", [".work/d.txt"]),
        ("none*", []),
        ("none.txt", ["none.txt"]),
    ],
)
@pytest.mark.usefixtures("folder")
def test_patterns_match_as_in_a_shell_and_hidden_files_only_by_name(pattern, found):
    assert match_files(pattern) == found
    absolute = [f"{Path.cwd()}/{name}" for name in found]
    assert match_files(f"{Path.cwd()}/{pattern}") == absolute
