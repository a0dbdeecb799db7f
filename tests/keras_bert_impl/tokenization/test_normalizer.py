import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.tokenization.character_table import CharacterTable
from keras_bert_impl.tokenization.normalizer import CharacterRules, build_double_array

TABLE = CharacterTable.load()
ASCII_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~§"


def look_up(units, key):
    """The value of a key, read as the kernels read it; None where there is none."""
    position = 0
    for byte in key:
        position ^= offset(int(units[position])) ^ byte
        if int(units[position]) & 0x800000FF != byte:
            return None
    unit = int(units[position])
    return int(units[position ^ offset(unit)]) & 0x7FFFFFFF if unit & 0x100 else None


def offset(unit):
    # Bit 9 says that the offset counts in units of 256, for tries larger than ours.
    return (unit >> 10) << ((unit & 0x200) >> 6)


def rules(do_lower_case=True, strip_accents=True, splits=ASCII_PUNCTUATION, in_vocabulary="ab"):
    return CharacterRules(TABLE, do_lower_case, strip_accents, set(splits), set(in_vocabulary))


@pytest.mark.parametrize(
    ("character", "lower_stripped", "lower", "as_is"),
    [
        ("A", "a", "a", "A"),
        ("é", "e", "é", "é"),
        ("İ", "i", "i\u0307", "İ"),
        ("각", "\u1100\u1161\u11a8", "각", "각"),
        ("\u0301", "", "\u0301", "\u0301"),
        ("\u200d", "", "", ""),
        ("\0", "", "", ""),
        ("\ufffd", "", "", ""),
        ("\n", "\n", "\n", "\n"),
        ("\x0b", "", "", ""),
        ("!", "!", "!", "!"),
        ("¿", " ¿ ", " ¿ ", " ¿ "),  # this kernel does not split there, BERT does
        ("\u037e", ";", " \u037e ", " \u037e "),
        ("≠", "=", "≠", "≠"),
        ("東", "東", "東", "東"),
        ("\uf900", "豈", "\uf900", "\uf900"),
        ("Σ", "§", "§", "Σ"),
        ("§", " \ue000 ", " \ue000 ", "§"),
    ],
)
def test_what_becomes_of_a_character(character, lower_stripped, lower, as_is):
    found = [
        rules(do_lower_case, strip_accents).replacement(character)
        for do_lower_case, strip_accents in [(True, True), (True, False), (False, False)]
    ]
    assert found == [lower_stripped, lower, as_is]


def test_where_only_the_kernel_splits_a_character_gets_another_name():
    made = rules(splits=[*ASCII_PUNCTUATION, "\u1b4e", "\u1b4f"], in_vocabulary="ab\ue000\u1b4f")
    unknown, name = "\ue001", "\ue002"  # \ue000 is taken by the vocabulary
    assert made.replacement("\u1b4e") == unknown
    assert made.replacement("\u1b4f") == name
    assert made.rewrite_token("##a\u1b4f") == f"##a{name}"
    assert made.replacement(name) == unknown  # a real one is not in the vocabulary
    assert made.replacement("\ue000") == "\ue000"


def test_a_section_sign_of_the_vocabulary_is_told_from_a_sigma():
    made = rules(in_vocabulary="§")
    assert made.replacement("§") == f" {made.rewrite_token('§')} "
    assert made.rewrite_token("§") != made.sigma_mark == made.replacement("Σ")


CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0").map(str.encode)
VALUES = st.integers(0, 2**31 - 1)


@given(st.dictionaries(CHARACTERS, VALUES, min_size=1, max_size=200), st.lists(CHARACTERS))
def test_every_key_has_its_value_and_no_other_key_has_one(entries, others):
    units = build_double_array(entries)
    for key in [*entries, *others]:
        assert look_up(units, key) == entries.get(key)


def test_a_trie_that_is_too_large_for_its_offsets_is_refused():
    keys = {
        bytes([a, b, c, d]): 1
        for a in range(128)
        for b in range(128, 256)
        for c in (200,)
        for d in (200,)
    }
    with pytest.raises(ValueError, match="units"):
        build_double_array(keys)
