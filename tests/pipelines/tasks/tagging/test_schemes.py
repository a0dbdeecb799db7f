"""Tagging schemes: written, read, turned into the scorer's."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.metrics.entities import Entity
from pipelines.tasks.tagging.schemes import BARE, BILOU, BIOES, IOB1, IOB2, SCHEMES

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
