"""Tagging schemes: written, read, turned into the scorer's."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from pipelines.metrics.entities import Entity
from pipelines.tasks.tagging.files import Sentence
from pipelines.tasks.tagging.schemes import (
    BARE,
    BILOU,
    BIOES,
    IOB1,
    IOB2,
    SCHEMES,
    TagStatistics,
    scheme_of_labels,
    tags_of_labels,
)

WORDS = 7


@st.composite
def entities(draw):
    """Entities of a sentence of seven words, some beside one another."""
    borders = sorted(draw(st.sets(st.integers(0, WORDS), max_size=6)))
    spans = itertools.pairwise(borders)
    kept = [span for span in spans if draw(st.booleans())]
    return [Entity(draw(st.sampled_from(["PER", "work-of-art"])), *span) for span in kept]


@given(entities(), st.sampled_from([IOB1, IOB2, BIOES, BILOU]))
def test_what_is_written_is_read_again(found, scheme):
    tags = scheme.write(found, WORDS)
    assert scheme.entities(tags) == found
    assert {*tags} <= {*scheme.tags(["PER", "work-of-art"])}


@given(entities())
def test_bare_types_join_neighbours_of_one_type(found):
    tags = BARE.write(found, WORDS)
    words = [{n: x.type for x in found for n in range(x.start, x.end)}.get(n) for n in range(WORDS)]
    assert tags == [kind or "O" for kind in words]
    for entity in BARE.entities(tags):
        assert {*tags[entity.start : entity.end]} == {entity.type}


TABLE = {
    "iob1": "I-PER I-PER O I-LOC B-LOC",
    "iob2": "B-PER I-PER O B-LOC B-LOC",
    "bioes": "B-PER E-PER O S-LOC S-LOC",
    "bilou": "B-PER L-PER O U-LOC U-LOC",
    "bare": "PER PER O LOC LOC",
}


@pytest.mark.parametrize("name", TABLE)
def test_each_scheme_writes_its_line_of_the_table(name):
    found = [Entity("PER", 0, 2), Entity("LOC", 3, 4), Entity("LOC", 4, 5)]
    assert " ".join(SCHEMES[name].write(found, 5)) == TABLE[name]


def test_the_scorer_reads_bioes_as_iob2_even_where_it_is_broken():
    assert [BIOES.as_iob(tag) for tag in ("E-A", "S-A", "I-A")] == ["I-A", "B-A", "I-A"]
    assert BIOES.entities(["E-A", "S-A", "O"]) == [Entity("A", 0, 1), Entity("A", 1, 2)]


FILE = Path("train.txt")


def sentence(*tags, first=1):
    words = tuple(f"word{number}" for number in range(len(tags)))
    return Sentence(words, tags, words, tuple(range(first, first + len(tags))))


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        (["O", "B-PER", "I-PER", "B-PER"], IOB2),
        (["O", "I-PER", "I-PER", "B-PER", "O", "I-LOC"], IOB1),
        (["B-PER", "E-PER", "S-LOC"], BIOES),
        (["B-PER", "I-PER", "L-PER", "U-LOC"], BILOU),
        (["person", "creative-work", "O"], BARE),
        (["A", "B", "O"], BARE),
        (["B-PER", "O", "B-PER", "O", "I-PER"], IOB2),  # one stray tag: it is counted later
    ],
)
def test_the_scheme_is_told_from_the_tags(tags, scheme):
    assert TagStatistics(FILE, [sentence(*tags)]).scheme() is scheme


@pytest.mark.parametrize(
    ("tags", "lines"),
    [
        (["B-PER", "person"], ("line 1 has the tag 'B-PER'", "line 2 'person'")),
        (["S-PER", "U-PER"], ("line 1 has the tag 'S-PER'", "line 2 'U-PER'")),
    ],
)
def test_mixed_schemes_are_named_with_both_lines(tags, lines):
    with pytest.raises(UserError, match="different tagging schemes") as error:
        TagStatistics(FILE, [sentence(*tags)]).scheme()
    assert all(line in str(error.value) for line in lines)


@pytest.mark.parametrize(
    ("tags", "right"),
    [
        (["B", "B", "O"], "B-NAME"),
        (["O", "B-", "I-"], "B-NAME"),
        (["i:PER", "B:PER"], "I-PER"),
        (["PER:B", "O"], "B-PER"),
    ],
)
def test_tags_that_are_no_types_are_refused(tags, right):
    with pytest.raises(UserError, match=rf"line \d: the tag '.*' is of a form .* write {right} \("):
        TagStatistics(FILE, [sentence(*tags)]).scheme()


def test_types_are_sorted_and_a_tag_of_another_scheme_is_named():
    statistics = TagStatistics(FILE, [sentence("B-PER", "I-PER", "B-LOC")])
    assert statistics.types(IOB2) == ["LOC", "PER"]
    with pytest.raises(UserError, match="line 1: 'S-PER' is no tag of iob2"):
        TagStatistics(FILE, [sentence("S-PER")]).types(IOB2)
    with pytest.raises(UserError, match="has no entity to learn"):
        TagStatistics(FILE, [sentence("O")]).types(IOB2)
    with pytest.raises(UserError, match="line 3: the tag 'B-LOC' is unknown"):
        statistics.types(IOB2, ["PER"])


@pytest.mark.parametrize(
    ("labels", "tags", "scheme"),
    [
        (["O", "B-PER", "I-PER", "MISC"], ["O", "B-PER", "I-PER", "O"], IOB2),
        (["[PAD]", "PER-S", "PER-B", "PER-E"], ["O", "S-PER", "B-PER", "E-PER"], BIOES),
        (["O", "person", "X", "[CLS]"], ["O", "person", "O", "O"], BARE),
        (["O", "creative-work", "WORK-S"], ["O", "creative-work", "WORK-S"], BARE),
    ],
)
def test_labels_of_other_makers_are_tags(labels, tags, scheme):
    assert tags_of_labels(labels) == tuple(tags)
    assert scheme_of_labels(tags) is scheme
