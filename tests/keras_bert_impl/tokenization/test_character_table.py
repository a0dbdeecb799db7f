import unicodedata

import pytest

from keras_bert_impl.tokenization.character_table import (
    ACCENT,
    CASE_IGNORABLE,
    CASED,
    DROPPED,
    PUNCTUATION,
    CharacterTable,
    differing_code_points,
)


@pytest.fixture(scope="module")
def pinned():
    return CharacterTable.load()


@pytest.fixture(scope="module")
def running():
    return CharacterTable.of_running_python()


def test_the_pinned_table_is_what_python_says_or_the_difference_is_named(pinned, running):
    differing = differing_code_points(pinned, running)
    if running.unicode_version != pinned.unicode_version:
        first = ", ".join(f"U+{number:04X}" for number in differing[:5])
        pytest.skip(
            f"Unicode {running.unicode_version} of this Python says otherwise than the pinned "
            f"{pinned.unicode_version} about {differing.size} code points ({first}, ...); "
            "the tokenizer keeps to the pinned version"
        )
    assert differing.size == 0


def test_a_difference_in_any_fact_is_found(pinned):
    facts = pinned.facts.copy()
    facts[0x41] ^= PUNCTUATION
    other = CharacterTable(
        "15",
        facts,
        {**pinned.lower_case, "1": "2"},
        {k: v for k, v in pinned.decomposition.items() if k != "é"},
        pinned.reordered,
    )
    assert differing_code_points(pinned, other).tolist() == [0x31, 0x41, 0xE9]


@pytest.mark.parametrize(
    ("character", "facts"),
    [
        ("A", CASED),
        ("1", 0),
        ("!", PUNCTUATION),
        ("'", PUNCTUATION | CASE_IGNORABLE),
        ("\u00ad", DROPPED | CASE_IGNORABLE),
        ("\u0301", ACCENT | CASE_IGNORABLE),
        ("\u2028", 0),
        ("東", 0),
    ],
)
def test_facts_of_a_character(pinned, character, facts):
    known = DROPPED | PUNCTUATION | ACCENT | CASED | CASE_IGNORABLE
    assert pinned.facts[ord(character)] & known == facts


def test_hangul_and_the_rest_decompose_as_in_unicodedata(pinned):
    characters = [chr(number) for number in [*range(0xAC00, 0xD7A4), 0xE9, 0x1EA5, 0xF900, 0x41]]
    assert [pinned.decompose(c) for c in characters] == [
        unicodedata.normalize("NFD", c) for c in characters
    ]


def test_marks_that_decomposition_reorders_are_listed(pinned):
    assert pinned.reordered["\u302e"] == 224
    assert not any(pinned.has(character, ACCENT) for character in pinned.reordered)
