"""What tags say of their scheme, and which line is to blame where they are mixed."""

from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from pipelines.tasks.tagging.files import Sentence
from pipelines.tasks.tagging.schemes import BARE, BILOU, BIOES, IOB1, IOB2
from pipelines.tasks.tagging.statistics import TagStatistics

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
        (["B-PER", "O", "B-PER", "O", "I-PER"], IOB2),  # one stray tag: it is counted later
    ],
)
def test_the_scheme_is_told_from_the_tags(tags, scheme):
    assert TagStatistics.of(FILE, [sentence(*tags)]).scheme() is scheme


@pytest.mark.parametrize(
    ("tags", "lines"),
    [
        (["B-PER", "person"], ("line 1 has the tag 'B-PER'", "line 2 'person'")),
        (["S-PER", "U-PER"], ("line 1 has the tag 'S-PER'", "line 2 'U-PER'")),
    ],
)
def test_mixed_schemes_are_named_with_both_lines(tags, lines):
    with pytest.raises(UserError, match="different tagging schemes") as error:
        TagStatistics.of(FILE, [sentence(*tags)]).scheme()
    assert all(line in str(error.value) for line in lines)


def test_types_are_sorted_and_a_tag_of_another_scheme_is_named():
    statistics = TagStatistics.of(FILE, [sentence("B-PER", "I-PER", "B-LOC")])
    assert statistics.types(IOB2) == ["LOC", "PER"]
    with pytest.raises(UserError, match="line 1: 'S-PER' is no tag of iob2"):
        TagStatistics.of(FILE, [sentence("S-PER")]).types(IOB2)
    with pytest.raises(UserError, match="has no entity to learn"):
        TagStatistics.of(FILE, [sentence("O")]).types(IOB2)
    with pytest.raises(UserError, match="line 3: the tag 'B-LOC' is unknown"):
        statistics.types(IOB2, ["PER"])
