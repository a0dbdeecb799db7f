"""The scripts beside the recipes, as a user runs them."""

import csv
import json
import runpy
import sys
from pathlib import Path

import pytest

from tests.support.squad_files import write_articles

RECIPES = Path(__file__).parents[3] / "tools" / "recipes"


@pytest.fixture
def script(monkeypatch, capsys):
    def call(name, *words):
        monkeypatch.setattr(sys, "argv", [name, *words])
        runpy.run_path(str(RECIPES / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out

    return call


def test_four_sentences_of_a_document_of_which_one_follows(script, tmp_path):
    sentences = [[f"Sentence {n} of document {k} is here." for n in range(8)] for k in range(30)]
    (tmp_path / "text.txt").write_text("\n\n".join("\n".join(some) for some in sentences) + "\n")
    out = script(
        "make_swag", f"--input_file={tmp_path}/text.txt", f"--output_dir={tmp_path}/set",
        "--dev_share=0.3",
    )  # fmt: skip
    assert out.splitlines()[1].startswith("lexical overlap chooses")
    rows = {}
    for name in ("train", "val"):
        with (tmp_path / "set" / f"{name}.csv").open(newline="") as file:
            rows[name] = list(csv.DictReader(file))
    documents = [{row["video-id"] for row in some} for some in rows.values()]
    assert documents[0].isdisjoint(documents[1])
    assert sum(map(len, rows.values())) == 60
    for row in (*rows["train"], *rows["val"]):
        endings = [row[f"ending{n}"] for n in range(4)]
        document = sentences[int(row["video-id"].removeprefix("document-"))]
        right = document[document.index(row["sent1"]) + 1]
        assert endings[int(row["label"])] == right
        assert set(endings) <= set(document) - {row["sent1"]}
        assert len(set(endings)) == 4


def test_questions_are_moved_to_passages_without_their_answers(script, tmp_path):
    source, target = write_articles(tmp_path / "train.json"), tmp_path / "moved.json"
    out = script(
        "make_unanswerable", f"--input_file={source}", f"--output_file={target}", "--share=1"
    )
    assert out == "48 questions also stand with another passage; 0 could not be moved\n"
    answers = {}
    for article in json.loads(source.read_text())["data"]:
        for paragraph in article["paragraphs"]:
            answers |= {one["id"]: one["answers"][0]["text"] for one in paragraph["qas"]}
    moved = 0
    for article in json.loads(target.read_text())["data"]:
        for paragraph in article["paragraphs"]:
            for one in paragraph["qas"]:
                if one["id"].endswith("-moved"):
                    moved += 1
                    answer = answers[one["id"].removesuffix("-moved")]
                    assert answer.casefold() not in paragraph["context"].casefold()
                    assert one["is_impossible"]
    assert moved == 48
