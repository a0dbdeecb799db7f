"""Predicted tags scored with intervals."""

from pathlib import Path

import numpy as np
import pytest

from keras_bert_impl.errors import UserError
from pipelines.metrics.entities import EntityScorer
from pipelines.tasks.tagging.options import ScoreTagsConfig
from pipelines.tasks.tagging.scores import score_tags

WORDS = 12


def write(path: Path, documents: int, right: float, seed: int, text_seed: int = 0) -> Path:
    """Documents of IOB2 tags, of which a share is predicted right."""
    tags, guesses = np.random.default_rng(text_seed), np.random.default_rng(seed)
    with path.open("w") as file:
        for number in range(documents):
            file.write(f"{'' if number == 0 else chr(10)}-DOCSTART- O O\n\n")
            for word in range(WORDS):
                tag = str(tags.choice(["O", "B-PER", "B-LOC"]))
                guess = tag if guesses.random() < right else "O"
                file.write(f"w{word} {tag} {guess}\n")
    return path


def figures(*paths, **options):
    return score_tags(ScoreTagsConfig(predictions_file=paths, **options))


def test_the_figures_are_those_of_conlleval(tmp_path):
    path = write(tmp_path / "a.txt", 5, 0.7, 1)
    scorer = EntityScorer()
    lines = [line.split() for line in path.read_text().splitlines()]
    rows = [line for line in lines if line and line[0] != "-DOCSTART-"]
    scorer.add([row[1] for row in rows], [row[2] for row in rows])
    found = figures(path)
    for name in ("precision", "recall", "f1"):
        assert found[name] == pytest.approx(scorer.scores()[name])
    assert found["f1_low"] < found["f1"] < found["f1_high"]


def test_the_interval_is_that_of_drawing_documents_by_hand(tmp_path):
    path = write(tmp_path / "a.txt", 40, 0.7, 1)
    lines = [line.split() for line in path.read_text().splitlines()]
    rows = [line for line in lines if line and line[0] != "-DOCSTART-"]
    documents = [rows[start : start + WORDS] for start in range(0, len(rows), WORDS)]
    draw, scores = np.random.default_rng(7), []
    for _ in range(1000):
        scorer = EntityScorer()
        for number in draw.integers(0, len(documents), len(documents)):
            _, right, guessed = zip(*documents[number], strict=True)
            scorer.add(right, guessed)
        scores.append(scorer.total.f1)
    found = figures(path)
    assert found["f1_low"] == pytest.approx(np.percentile(scores, 2.5), abs=0.7)
    assert found["f1_high"] == pytest.approx(np.percentile(scores, 97.5), abs=0.7)


def test_runs_are_averaged(tmp_path):
    one, two = (write(tmp_path / f"{seed}.txt", 9, 0.7, seed) for seed in (1, 2))
    alone = [figures(path)["f1"] for path in (one, two)]
    assert figures(one, two)["f1"] == pytest.approx(np.mean(alone))


def test_predictions_for_another_text_are_refused(tmp_path):
    one, other = write(tmp_path / "1.txt", 3, 1, 1), write(tmp_path / "2.txt", 3, 1, 1, 5)
    with pytest.raises(UserError, match=r"2.txt: has other right tags than .*1.txt"):
        figures(one, other)


def test_short_tags_are_scored_as_what_they_stand_for(tmp_path):
    """In either column, also where the right ones alone would not show what they are."""
    path = tmp_path / "a.txt"
    path.write_text("a B_PS B_PS\nb I I\n\n; c\nc B_LC B_PS\n\nd B_PS O\n")
    found = figures(path)
    assert (found["precision"], found["recall"]) == (50, pytest.approx(100 / 3))
    path.write_text("a NNP B-PS\nb VB O\n")
    with pytest.raises(UserError, match="are of different tagging schemes"):
        figures(path)
    path.write_text("a B_PS B_PS\nb O I\n\nc B_PS B_PS\n")
    assert figures(path)["f1"] == 50
