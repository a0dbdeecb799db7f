"""Entities as the official scorer counts them: its recorded output, and its rules word by word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from pipelines.metrics.entities import Entity, EntityScorer, find_entities, klue_scores
from pipelines.tasks.tagging.schemes import SCHEMES
from tests.support.official_answers import golden_folder

NAMES = [
    "bioes",
    "iob1",
    "iob1_broken_guesses",
    "iob2",
    "iob2_broken_guesses",
    "iob2_nothing_found",
    "iob2_nothing_there",
]
TAGS = st.lists(st.sampled_from(["O", "B-A", "I-A", "B-B", "I-B"]), max_size=8)


def scorer_of(path, scheme):
    scorer = EntityScorer()
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        rows = [line.split("\t") for line in block.splitlines() if line]
        scorer.add(*([scheme.as_iob(row[column]) for row in rows] for column in (1, 2)))
    return scorer


@pytest.mark.data
@pytest.mark.parametrize("name", NAMES)
def test_the_report_is_the_official_scripts(data_folder, name):
    folder = golden_folder(data_folder, "conlleval")
    scorer = scorer_of(folder / f"{name}.txt", SCHEMES[name.split("_")[0]])
    assert scorer.report() == (folder / f"{name}.conlleval").read_text(encoding="utf-8")


def plain_entities(tags):
    """The script's rules: what begins and what ends, by each pair of neighbours."""
    found, open_since = [], None
    for position, (before, tag) in enumerate(zip(["O", *tags], [*tags, "O"], strict=True)):
        ends = before != "O" and (tag == "O" or tag[0] == "B" or before[2:] != tag[2:])
        begins = tag != "O" and (tag[0] == "B" or before == "O" or before[2:] != tag[2:])
        if ends:
            found.append(Entity(before[2:], open_since, position))
        if begins:
            open_since = position
    return found


@given(TAGS)
def test_entities_begin_and_end_where_the_scripts_rules_say(tags):
    assert find_entities(tags) == plain_entities(tags)


@given(TAGS, TAGS)
def test_klues_figures_are_those_of_its_two_calls(expected, predicted):
    """`sklearn` counts tags; of types only entities that begin with "B-" count, as in seqeval."""
    size = min(len(expected), len(predicted))
    expected, predicted = [*expected[:size], "O"], [*predicted[:size], "O"]
    labels = ["O", "B-A", "I-A", "B-B", "I-B"]
    found = klue_scores(expected, predicted, labels)
    tags = f1_score(expected, predicted, labels=labels, average="macro", zero_division=1)
    assert found["character_macro_f1"] == pytest.approx(100 * tags)
    counts = {}
    for kind in "AB":
        both = [
            {tuple(x) for x in plain_entities(tags) if x[0] == kind and tags[x[1]][0] == "B"}
            for tags in (expected, predicted)
        ]
        if both[0] | both[1]:
            counts[kind] = 2 * len(both[0] & both[1]) / (len(both[0]) + len(both[1]))
    mean = sum(counts.values()) / len(counts) if counts else 0
    assert found["entity_macro_f1"] == pytest.approx(100 * mean)
