from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.learner import (
    LearnerOptions,
    coverage,
    learn_tokens,
    limit_for,
    ranked_characters,
)
from keras_bert_impl.tokenization.reference import split_tokens
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

# The textbook's example of byte-pair encoding (Sennrich et al., 2016).
TEXTBOOK = {"low": 5, "lower": 2, "newest": 6, "widest": 3}


def test_the_first_merges_are_those_of_the_textbook():
    learned = learn_tokens(TEXTBOOK, LearnerOptions(30))
    assert learned.pairs[:4] == [("##e", "##s"), ("##es", "##t"), ("l", "##o"), ("lo", "##w")]


def most_frequent_pairs(counts):
    """The first step by the book: count all pairs of neighbours."""
    pairs = Counter()
    for word, count in counts.items():
        tokens = [word[0], *(f"##{character}" for character in word[1:])]
        for pair in pairwise(tokens):
            pairs[pair] += count
    most = max(pairs.values(), default=0)
    return {pair for pair, count in pairs.items() if count == most}


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.text("abcd", min_size=2, max_size=6), st.integers(2, 20), min_size=1))
def test_the_first_merge_joins_a_most_frequent_pair(counts):
    size = 5 + len(set("".join(counts))) + len({c for word in counts for c in word[1:]}) + 1
    learned = learn_tokens(counts, LearnerOptions(size))
    assert learned.pairs[0] in most_frequent_pairs(counts)


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


def test_words_longer_than_any_that_is_cut_do_not_count():
    tokens = learn_tokens({"ab": 3, "z" * 201: 9}, LearnerOptions(9)).vocabulary.tokens
    assert tokens == (*SPECIAL_TOKENS, "a", "b", "##b", "ab")


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


@given(WORDS, st.sampled_from([0.0, 0.05, 0.3, 0.99]))
def test_the_limit_for_a_share_is_the_smallest_one(counts, share):
    def lost(limit):
        kept = {*ranked_characters(counts)[:limit]}
        return sum(n for word, n in counts.items() if set(word) - kept) / sum(counts.values())

    limit = limit_for(counts, share)
    assert lost(limit) <= share
    assert limit == 1 or lost(limit - 1) > share
