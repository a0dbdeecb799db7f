from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.tokenization.reference import longest_matches, longest_tokens

TOKENS = {"un", "##aff", "##able", "##a", "a", "ab", "##b", "##bc"}


def test_a_word_that_continues_another_has_no_first_token():
    assert longest_tokens("abc", TOKENS, continues=True) == ["##a", "##bc"]
    assert longest_tokens("un", TOKENS, continues=True) is None


def splits(word):
    """Every way to part a word."""
    if not word:
        yield ()
    for length in range(1, len(word) + 1):
        for rest in splits(word[length:]):
            yield (word[:length], *rest)


def marked(parts):
    return [part if number == 0 else f"##{part}" for number, part in enumerate(parts)]


@given(
    st.text("ab", max_size=8),
    st.sets(st.text("ab", min_size=1, max_size=4)),
    st.sets(st.text("ab", min_size=1, max_size=4)),
)
def test_the_tokens_are_the_greedy_ones_of_all_ways_to_part_a_word(word, first, later):
    vocabulary = first | {f"##{part}" for part in later}

    def is_greedy(parts):
        for number, part in enumerate(parts):
            rest = "".join(parts[number:])
            longer = [rest[:n] for n in range(len(part) + 1, len(rest) + 1)]
            if any(
                marked(["", token])[1] in vocabulary if number else token in vocabulary
                for token in longer
            ):
                return False
        return True

    possible = [p for p in splits(word) if vocabulary.issuperset(marked(p)) and is_greedy(p)]
    expected = marked(possible[0]) if possible else None
    assert len(possible) <= 1
    assert longest_tokens(word, vocabulary) == expected
    known = {token: token for token in vocabulary}
    assert longest_matches(word, known.get, longest=6) == expected
