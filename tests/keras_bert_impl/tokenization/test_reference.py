"""The reference on nasty strings; the right answers were written by hand.

They were compared once with google-research/bert's own tokenization.py (commit eedf571).
"""

import pytest

from keras_bert_impl.tokenization import reference

UNCASED_WORDS = [
    ("", []),
    ("   \t\r\n  ", []),
    ("Hello, World!", ["hello", ",", "world", "!"]),
    ("don't", ["don", "'", "t"]),
    ("a\tb\nc\rd", ["a", "b", "c", "d"]),
    ("a\x0bb", ["ab"]),  # a vertical tab is a control character, no white space
    ("a\x0cb\x1cc\x1fd\x85e", ["abcde"]),
    ("a\0b\ufffdc", ["abc"]),
    ("a\u00a0b\u3000c\u1680d", ["a", "b", "c", "d"]),
    ("a\u2028b\u2029c", ["a", "b", "c"]),  # found by str.split only
    ("a\u200bb\u200dc\u00add\ufeffe", ["abcde"]),  # format characters vanish
    ("$10^3`~<=>|+", ["$", "10", "^", "3", "`", "~", "<", "=", ">", "|", "+"]),
    ("½×2°©", ["½×2°©"]),  # symbols beyond ASCII are no punctuation
    ("¡Hola! ¿Qué?", ["¡", "hola", "!", "¿", "que", "?"]),
    ("“x”—y…", ["“", "x", "”", "—", "y", "…"]),
    ("Ä É ñ Å", ["a", "e", "n", "a"]),
    ("e\u0301\u0327 a\u0323\u0301", ["e", "a"]),
    ("Straße ŒUVRE ﬁn Ⅷ ²", ["straße", "œuvre", "ﬁn", "ⅷ", "²"]),
    ("İstanbul DIŞ", ["istanbul", "dis"]),
    ("ΑΣ ΣΑΣ Σ", ["ας", "σας", "σ"]),
    ("ΑΣ. ΑΣ.Α ΑΣ'", ["ας", ".", "ασ", ".", "α", "ας", "'"]),  # "." does not end a word for Σ
    ("ΑΣΣ ΣΣ", ["ασς", "σς"]),
    ("Α\x00Σ\x01 Α\x00Σ\x01Α", ["ας", "ασα"]),
    ("ΑΣ東 東Σ", ["ας", "東", "東", "σ"]),
    ("\u037e \u2260 \u1fef", [";", "=", "`"]),  # their decompositions are punctuation
    ("東京abc㐀", ["東", "京", "abc", "㐀"]),
    ("\uf900\U0002f800", ["豈", "丽"]),  # compatibility ideographs decompose
    ("ぁあ ア", ["ぁあ", "ア"]),  # kana are no ideographs
    ("\U0002b81d\U0002ebe0\U00030000", ["\U0002b81d", "\U0002ebe0\U00030000"]),  # E, F and G blocks
    ("각", ["\u1100\u1161\u11a8"]),
    ("한국어", ["\u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165"]),
    ("\u302e가", ["\u302e\u1100\u1161"]),  # a tone mark is Mc, no accent
    ("Ελλάδα", ["ελλαδα"]),
    ("ऑंध्र", ["ऑधर"]),  # Devanagari loses its nonspacing marks
    ("👩‍💻!", ["👩💻", "!"]),
    ("\ue000a \U0010fffd", ["\ue000a", "\U0010fffd"]),  # private use stays
    ("a\u0378b", ["a\u0378b"]),  # so does what is not assigned
    ("\u202eabc\u2066", ["abc"]),
    ("[MASK] [CLS]", ["[", "mask", "]", "[", "cls", "]"]),
    ("##ing", ["#", "#", "ing"]),
    (b"caf\xc3\xa9 \xff\xfe\xc3 ok\xe4\xb8", ["cafe", "ok"]),
    (b"\xed\xa0\x80a\xf4\x90\x80\x80", ["a"]),  # a surrogate and a number beyond Unicode
]

CASED_WORDS = [
    ("Hello, Wörld!", ["Hello", ",", "Wörld", "!"]),
    ("e\u0301", ["e\u0301"]),
    ("İΑΣ", ["İΑΣ"]),
    ("東A京", ["東", "A", "京"]),
    ("\u037ea\u2260", ["\u037e", "a\u2260"]),
    ("각", ["각"]),
    ("A\0B\u200bC", ["ABC"]),
]


@pytest.mark.parametrize(("line", "words"), UNCASED_WORDS)
def test_words_of_lower_cased_text(line, words):
    assert reference.split_words(line, do_lower_case=True) == words


@pytest.mark.parametrize(("line", "words"), CASED_WORDS)
def test_words_of_text_that_keeps_its_case(line, words):
    assert reference.split_words(line, do_lower_case=False) == words


def test_lower_case_and_accents_apart():
    line = "ÉΑΣ ŉ"
    assert reference.split_words(line, True, False) == ["éας", "ŉ"]
    assert reference.split_words(line, False, True) == ["EΑΣ", "ŉ"]


TOKENS = {"un", "##aff", "##able", "a", "##a", "##b", "ab", "x", "##☃"}


@pytest.mark.parametrize(
    ("word", "tokens"),
    [
        ("unaffable", ["un", "##aff", "##able"]),
        ("ab", ["ab"]),
        ("aab", ["a", "##a", "##b"]),  # the longest token first: no "##ab"
        ("abx", ["[UNK]"]),  # "x" may begin a word, not continue it
        ("b", ["[UNK]"]),
        ("x☃", ["x", "##☃"]),
        ("a" * 200, ["a", *["##a"] * 199]),
        ("a" * 201, ["[UNK]"]),
        ("x" + "☃" * 199, ["x", *["##☃"] * 199]),  # characters count, not bytes
    ],
)
def test_tokens_of_a_word(word, tokens):
    assert reference.split_tokens(word, TOKENS) == tokens


@pytest.mark.parametrize("text", ["a\ud800b", "\udfff", "\ud83d\ude00a"])
def test_a_word_with_half_of_a_surrogate_pair_is_unknown_as_in_the_original(text):
    assert reference.tokenize(f"a {text}", {*"ab", "##a", "##b"}) == ["a", "[UNK]"]
