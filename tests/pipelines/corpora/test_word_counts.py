from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.tokenization import reference
from pipelines.corpora.documents import Reading, TextBlock
from pipelines.corpora.sources import Source
from pipelines.corpora.unpacking import LineBlock
from pipelines.corpora.word_counts import CountedBlock, count_block, merge_counts
from tests.support.tokenization import trouble_text


def block(text):
    return TextBlock(Source("x", "text"), LineBlock(1, text.encode(), 7), True)


def test_words_are_counted_as_wordpiece_sees_them():
    counted = count_block(block("The end. the END!\n\nthé\n"), Reading(), True, True)
    assert counted.counts == {"the": 3, "end": 2, ".": 1, "!": 1}
    assert counted.packed_bytes == 7


@given(trouble_text(), st.booleans())
def test_counting_parts_between_spaces_is_counting_words(text, do_lower_case):
    line = " ".join(text.split("\n"))
    counted = count_block(block(line + "\n"), Reading(), do_lower_case, do_lower_case)
    assert counted.counts == Counter(reference.split_words(line, do_lower_case))


def blocks(*counts):
    return [CountedBlock(Counter(words), 0) for words in counts]


def test_counts_of_blocks_are_added():
    assert merge_counts(blocks("aab", "bc"), 100) == (Counter(a=2, b=2, c=1), 0)


def test_the_rarest_words_go_where_there_are_too_many():
    counts, dropped = merge_counts(blocks("aaabbcdef", "ag"), most_words=5)
    assert counts == {"a": 4, "b": 2, "g": 1}
    assert dropped == 4


def test_of_equally_rare_words_the_first_stay():
    assert merge_counts(blocks("dcba"), most_words=3) == (Counter(a=1), 3)


@given(st.lists(st.text("abcdefghij", max_size=20), max_size=20), st.integers(2, 8))
def test_memory_is_bounded_and_nothing_is_lost_unsaid(texts, most_words):
    counts, dropped = merge_counts(blocks(*texts), most_words)
    assert len(counts) <= most_words
    assert counts.total() + dropped == sum(map(len, texts))
