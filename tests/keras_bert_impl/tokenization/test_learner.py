import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.learner import (
    LearnerOptions,
    coverage,
    learn_most_tokens,
    learn_tokens,
)
from keras_bert_impl.tokenization.reference import split_tokens
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

# The textbook's example of byte-pair encoding (Sennrich et al., 2016).
TEXTBOOK = {"low": 5, "lower": 2, "newest": 6, "widest": 3}


def test_the_first_merges_are_those_of_the_textbook():
    learned = learn_tokens(TEXTBOOK, LearnerOptions(30))
    assert learned.pairs[:4] == [("##e", "##s"), ("##es", "##t"), ("l", "##o"), ("lo", "##w")]


def test_the_same_counts_in_any_order_give_the_same_tokens():
    counts = {f"{a}{b}{c}": 2 + (ord(a) * ord(c)) % 5 for a in "xyz" for b in "uvw" for c in "rst"}
    turned = dict(reversed(counts.items()))
    first = learn_tokens(counts, LearnerOptions(40)).vocabulary
    assert all(learn_tokens(turned, LearnerOptions(40)).vocabulary == first for _ in range(5))


def test_special_tokens_and_unused_entries_come_first():
    options = LearnerOptions(30, num_unused=2, special_tokens=("[USER]",))
    assert learn_tokens(TEXTBOOK, options).vocabulary.tokens[:8] == (
        *("[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[USER]"),
    )


def test_rare_characters_are_left_out():
    counts = {"aa": 9, "ab": 5, "aé": 1}
    tokens = learn_tokens(counts, LearnerOptions(10, limit_alphabet=2)).vocabulary.tokens
    assert tokens == (*SPECIAL_TOKENS, "a", "b", "##a", "##b", "aa")


def test_pairs_rarer_than_asked_are_not_joined():
    with pytest.raises(UserError, match="`vocab_size=12` cannot be reached: the text gives 11"):
        learn_tokens({"ab": 5, "ac": 1}, LearnerOptions(12, min_frequency=2))


def test_a_limit_that_keeps_a_size_from_being_reached_is_named():
    with pytest.raises(UserError, match=r"raise `limit_alphabet` \(the text has 3\) or"):
        learn_tokens({"ab": 5, "ac": 1}, LearnerOptions(99, limit_alphabet=2))
    with pytest.raises(UserError, match="lower `min_frequency` or give more text"):
        learn_tokens({"ab": 5, "ac": 1}, LearnerOptions(99))


def test_a_size_below_the_alphabet_is_refused():
    with pytest.raises(UserError, match="`vocab_size=10` is less than the 16 special tokens and"):
        learn_tokens({"abcdef": 3}, LearnerOptions(10))


def test_coverage_of_words():
    vocabulary = Vocabulary([*SPECIAL_TOKENS, "low", "##e", "##r", "w"])
    found = coverage({"low": 6, "lower": 2, "x": 2}, vocabulary)
    assert found.words == 10
    assert found.tokens_per_word == pytest.approx((6 * 1 + 2 * 3) / 8)  # "x" is [UNK]
    assert (found.unknown_share, found.whole_share) == (0.2, 0.6)


WORDS = st.dictionaries(st.text("abcdé", min_size=1, max_size=5), st.integers(1, 9), min_size=1)


@given(WORDS, st.sets(st.sampled_from([*"abc", "##a", "##b", "##c", "ab", "cab", "##bé"])))
def test_the_share_of_unknown_words_is_that_of_words_cut_one_by_one(counts, tokens):
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *sorted(tokens)])
    unknown = sum(n for word, n in counts.items() if split_tokens(word, vocabulary) == ["[UNK]"])
    found = coverage(counts, vocabulary).unknown_share
    assert found == pytest.approx(unknown / sum(counts.values()))


@pytest.mark.parametrize("character", ["─", "ㅋ", "ก", "😀", "x"])
def test_long_runs_of_one_character_give_tokens_that_a_vocabulary_may_have(character):
    counts = {character * 130: 60, "low": 5, "lower": 2}
    tokens = learn_most_tokens(counts, LearnerOptions(400)).vocabulary.tokens
    assert {*"low", "low", "##er"} <= {*tokens}
    assert 32 <= max(token.count(character) for token in tokens) <= 64


def test_words_of_up_to_sixty_characters_may_be_tokens():
    words = ["".join(chr(97 + (n * k) % 26) for n in range(60)) for k in (3, 5, 7)]
    learned = learn_most_tokens(dict.fromkeys(words, 9), LearnerOptions(900))
    assert {*words} <= {*learned.vocabulary.tokens}
