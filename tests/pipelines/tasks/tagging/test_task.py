"""The task: its figures and files; whole runs stand in the tests of the tool."""

import pytest

from pipelines.metrics.entities import EntityScorer
from pipelines.metrics.guessing import guesses_of
from pipelines.tasks.tagging.answers import TagAnswer
from pipelines.tasks.tagging.options import ScoreTagsConfig, TaggingConfig
from pipelines.tasks.tagging.scores import score_tags
from pipelines.tasks.tagging.task import open_tagging
from tests.support.tagged_files import write_tagged


@pytest.fixture
def task(tmp_path):
    for seed, split in enumerate(("train", "dev")):
        write_tagged(tmp_path / f"{split}.txt", 12, seed, separator=" ")
    return open_tagging(TaggingConfig(data_dir=tmp_path))


def answered(task, change=lambda tags: tags):
    """The dev documents with their own tags for answers."""
    return [
        (document, TagAnswer([change(sentence.tags) for sentence in document.sentences], []))
        for document in task.examples("dev")
    ]


def test_the_files_own_tags_score_all(task):
    scores = task.score(answered(task))
    assert (scores["accuracy"], scores["f1"], scores["f1_LOC"]) == (100, 100, 100)
    nothing = task.score(answered(task, lambda tags: ["O"] * len(tags)))
    assert (nothing["recall"], nothing["f1"]) == (0, 0)
    assert 0 < nothing["accuracy"] < 100


def test_the_predictions_are_the_file_with_a_column_that_the_scorer_reads(task, tmp_path):
    given = answered(task, lambda tags: ["O", *tags[1:]])
    columns, entities = task.write(tmp_path, "dev", given)
    (report,) = task.illustrate(tmp_path, "dev", given)
    assert (columns.name, entities.name) == ("dev_predictions.txt", "dev_entities.jsonl")
    lines = columns.read_text().splitlines()
    own = (tmp_path / "dev.txt").read_text().splitlines()
    assert [line.rpartition(" ")[0] for line in lines if line] == [line for line in own if line]
    scorer = EntityScorer()
    for block in columns.read_text().split("\n\n"):
        rows = [line.split(" ") for line in block.splitlines() if line]
        scorer.add([row[-2] for row in rows], [row[-1] for row in rows])
    assert report.read_text() == scorer.report()
    assert scorer.scores() == task.score(given)


def test_predictions_of_a_file_with_short_tags_and_remarks_score_as_they_do_here(tmp_path):
    for split in ("train", "dev"):
        write_tagged(tmp_path / f"{split}.txt", 20, scheme="short", per_document=0)
    task = open_tagging(TaggingConfig(data_dir=tmp_path))
    given = answered(task, lambda tags: ["O", *tags[1:]])
    columns, _ = task.write(tmp_path, "dev", given)
    scored = score_tags(ScoreTagsConfig(predictions_file=(columns,)))
    assert scored["f1"] == pytest.approx(task.score(given)["f1"])


def test_tags_are_guessed_by_finding_no_entity(task, tmp_path):
    lines = (tmp_path / "dev.txt").read_text().splitlines()
    tags = [line.split(" ")[1] for line in lines if line]  # -DOCSTART-, too, as `conlleval` counts
    guesses = guesses_of(task, "dev")
    guess = guesses["accuracy"]
    assert (guess.words, guesses["f1"].value) == ("no entity anywhere", 0.0)
    assert guess.value == pytest.approx(100 * tags.count("O") / len(tags))
    found = task.score(answered(task, lambda tags: ["O"] * len(tags)))
    assert found["accuracy"] == guess.value
    assert (task.curve_style.scores[:2], task.curve_style.full_score) == (("accuracy", "f1"), 100.0)
