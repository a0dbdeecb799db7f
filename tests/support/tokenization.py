"""Vocabularies and text that make trouble for tokenizers, and comparison with the reference."""

import unicodedata

import numpy as np
from hypothesis import strategies as st

from keras_bert_impl.tokenization import reference
from keras_bert_impl.tokenization.certificate import drifted_characters
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

OPTIONS = [(True, True), (True, False), (False, False), (False, True)]  # lower case, strip accents

TROUBLE = [
    *"aAbBsSzZ019 ",
    *"ΣσςΑαΩώΆ.:'’·\u00ad",  # a final sigma, and what may stand next to it
    *"İıŉǅßẞﬁⅧ½²",
    *"éÉñ\u0301\u0327\u0323\u0345\u0308\u0f71\u0f72",  # accents in every order
    *"각한ㄱᄀ\u1161\u11a8\u302e\u302f",  # Hangul: syllables, jamo, tone marks
    *"東京\u3400\uf900\U0002f800\U00020000ぁア",
    *"😀\u200d👩\ufe0f\u200e\u200f\u202e\u2066",  # emoji with joiners, marks of direction
    *"\ue000\uf8ff\U000f0000\u0378\u1b4e\U00011f43",  # private use, not (yet) assigned
    *"\0\ufffd\x01\x7f\x85\x0b\x0c\x1c\x1f\t\n\r",
    *"\u00a0\u3000\u2028\u2029\u1680\ufeff\u200b",
    *"!$^`#-_[](){}«»–“”„…、。；;·",
    "##",
    "[MASK]",
    "[UNK]",
    "MASK",
    "ΑΣ",
    "Σ" * 3,
]


def trouble_text(max_size=30):
    """Text from an alphabet of trouble, with words of about 200 characters now and then."""
    long_words = st.builds(
        lambda token, count, end: token * count + end,
        st.sampled_from(["a", "ab", "é", "Σ", "각", "ㄱ", "😀"]),
        st.integers(99, 300),
        st.sampled_from(["", "a", "Σ", "!", "\u0301"]),
    )
    item = st.one_of(*[st.sampled_from(TROUBLE)] * 20, st.characters(), long_words)
    return st.lists(item, max_size=max_size).map("".join)


def trouble_bytes():
    """Bytes that are UTF-8 for the most part."""
    items = st.sampled_from(
        [*(c.encode() for c in TROUBLE), b"\xff", b"\xc3", b"\xe4\xb8", b"\x80"]
    )
    return st.lists(st.one_of(items, st.binary(max_size=4)), max_size=30).map(b"".join)


def alphabet_vocabulary():
    """A vocabulary with every visible character below U+3100 and some of each later block."""
    numbers = [*range(0x21, 0x3100), *range(0x3100, 0xD800, 7), *range(0xF900, 0x20000, 3)]
    kept = [chr(n) for n in numbers if unicodedata.category(chr(n)) not in ("Cn", "Cc", "Cf", "Zs")]
    pairs = ["ab", "##ab", "##bc", "abσ", "##ας", "##ασ", "σσ", "##東", "\ue001", "##\ue002"]
    tokens = [*SPECIAL_TOKENS, *kept, *(f"##{c}" for c in kept), *pairs]
    return Vocabulary([p for p in dict.fromkeys(tokens) if p.strip() == p and p != "##"])


def stable_code_points():
    """All code points about which the running Python and the pinned table say the same."""
    numbers = np.setdiff1d(np.arange(0x110000), [*map(ord, drifted_characters())])
    return numbers[(numbers < 0xD800) | (numbers >= 0xE000)]


def expected_ids(lines, vocabulary, do_lower_case, strip_accents=None):
    """The reference's ids of each line."""
    return [
        [
            vocabulary.id_of(token)
            for token in reference.tokenize(line, vocabulary, do_lower_case, strip_accents)
        ]
        for line in lines
    ]


def by_line(block):
    """The ids of a block, a list for each line."""
    return [part.tolist() for part in np.split(block.ids, block.offsets[1:-1])]
