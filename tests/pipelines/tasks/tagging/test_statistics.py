"""What tags say of their scheme, and which line is to blame where they are mixed."""

import logging
from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from pipelines.tasks.tagging.files import Sentence
from pipelines.tasks.tagging.schemes import BARE, BILOU, BIOES, IOB1, IOB2
from pipelines.tasks.tagging.statistics import TagStatistics, check_tags

FILE = Path("train.txt")


def sentence(*tags, first=1):
    words = tuple(f"word{number}" for number in range(len(tags)))
    return Sentence(words, tags, words, tuple(range(first, first + len(tags))))


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        (["O", "B-PER", "I-PER", "B-PER"], IOB2),
        (["O", "I-PER", "I-PER", "B-PER", "O", "I-LOC"], IOB1),
        (["I-PER", "O", "I-LOC", "I-PER"], IOB1),
        (["B-PER", "E-PER", "S-LOC"], BIOES),
        (["B-PER", "I-PER", "L-PER", "U-LOC"], BILOU),
        (["person", "creative-work", "O"], BARE),
        (["O", "O"], IOB2),
        (["B-PER", "O", "B-PER", "O", "I-PER"], IOB2),  # one stray tag: it is named later
    ],
)
def test_the_scheme_is_told_from_the_tags(tags, scheme):
    assert TagStatistics.of(FILE, [sentence(*tags)]).scheme() is scheme


def test_the_scheme_is_that_of_all_sentences():
    statistics = TagStatistics.of(FILE, [sentence("B-PER"), sentence("S-PER", first=3)])
    assert statistics.scheme() is BIOES


@pytest.mark.parametrize(
    ("tags", "lines"),
    [
        (["B-PER", "person"], ("line 2 has the tag 'person'", "line 1 'B-PER'")),
        (["S-PER", "U-PER"], ("line 1 has the tag 'S-PER'", "line 2 'U-PER'")),
    ],
)
def test_mixed_schemes_are_named_with_both_lines(tags, lines):
    with pytest.raises(UserError, match="different tagging schemes") as error:
        TagStatistics.of(FILE, [sentence(*tags)]).scheme()
    assert all(line in str(error.value) for line in lines)


@pytest.mark.parametrize(
    ("tags", "written"),
    [
        (["B_PER", "I_PER", "O"], "I-PER"),
        (["PER_B", "-", "PER_I"], "I-PER"),
        (["b-x", "i-x"], "I-x"),
    ],
)
def test_letters_in_another_form_are_not_taken_for_types(tags, written):
    statistics = TagStatistics.of(FILE, [sentence(*tags)])
    with pytest.raises(UserError, match=f"in a form that is not read; write {written} "):
        statistics.scheme()
    assert TagStatistics.of(FILE, [sentence("vitamin_B", "group_I", "O")]).scheme() is BARE


def test_types_are_sorted_and_a_tag_of_another_scheme_is_named():
    statistics = TagStatistics.of(FILE, [sentence("B-PER", "I-PER", "B-LOC")])
    assert statistics.types(IOB2) == ["LOC", "PER"]
    with pytest.raises(UserError, match="line 1: 'S-PER' is no tag of iob2"):
        TagStatistics.of(FILE, [sentence("S-PER")]).types(IOB2)
    with pytest.raises(UserError, match="has no entity to learn"):
        TagStatistics.of(FILE, [sentence("O")]).types(IOB2)


@pytest.mark.parametrize(
    ("scheme", "tags", "message"),
    [
        (IOB2, ["B-PER", "O", "I-PER"], "line 9: the tag 'I-PER' starts nowhere"),
        (IOB2, ["B-PER", "B-LOC"], "line 8: the tag 'B-LOC' is unknown .training has the types P"),
        (IOB1, ["O", "B-PER"], "line 8: the tag 'B-PER' begins no second entity"),
        (BIOES, ["B-PER", "O"], "line 7: the tag 'B-PER' does not end"),
        (BARE, ["PER", "place"], "line 8: the tag 'place' is unknown"),
    ],
)
def test_a_tag_that_cannot_stand_is_named_with_its_line(scheme, tags, message):
    with pytest.raises(UserError, match=f"train.txt: {message}"):
        check_tags(FILE, sentence(*tags, first=7), scheme, ["PER"])


def test_letters_without_types_are_refused_unless_they_are_the_types():
    statistics = TagStatistics.of(FILE, [sentence("O", "B", "I", "O")])
    with pytest.raises(UserError, match="line 2 has the tag 'B' without a type; write B-NAME"):
        statistics.scheme()
    assert TagStatistics.of(FILE, [sentence("B", "I", "X")]).scheme() is BARE


def test_blanks_among_words_are_noticed(caplog):
    items = ("e\u0301", " ", "a")
    statistics = TagStatistics.of(FILE, [Sentence(items, ("O",) * 3, items, (4, 5, 6))])
    statistics.log(None, "words")
    assert "lines of blanks, as line 5, look like characters, but line 4 has" in caplog.text


def test_a_very_long_sentence_is_noticed(caplog):
    statistics = TagStatistics.of(FILE, [sentence("O"), sentence(*["O"] * 20_000, first=3)])
    with caplog.at_level(logging.INFO):
        statistics.log(IOB2, "words")
    assert "2 sentences, 20001 words, tags in iob2" in caplog.text
    assert "begins on line 3 has 20000 words" in caplog.text
