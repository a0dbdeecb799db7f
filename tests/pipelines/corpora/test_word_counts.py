from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.tokenization import reference
from pipelines.corpora import word_counts
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
    words = Counter(reference.split_words(line, do_lower_case))
    assert counted.counts == {word: n for word, n in words.items() if len(word) <= 200}
    assert counted.too_long == words.total() - sum(counted.counts.values())


def test_words_that_are_too_long_for_the_learner_are_only_counted(tmp_path):
    counted = count_block(block(f"{'a' * 200} {'b' * 201} b {'b' * 201}\n"), Reading(), True, True)
    assert counted.counts == {"a" * 200: 1, "b": 1}
    assert counted.too_long == 2
    assert merge_counts([counted, counted], 100)[1] == 4


def test_only_short_parts_are_remembered(monkeypatch):
    monkeypatch.setattr(word_counts, "_MEMORY", {})
    sentence = "东" * 21
    counted = count_block(block(f"Short. {sentence} {'a' * 20}\n"), Reading(), True, True)
    assert counted.counts == {"short": 1, ".": 1, "东": 21, "a" * 20: 1}
    assert word_counts._MEMORY == {(True, True): {"Short.": "short .", "a" * 20: "a" * 20}}


def test_what_is_remembered_does_not_show(monkeypatch):
    text = "Low, lower; the lowest of words-beyond-twenty-characters! 东京都 " * 3 + "\n"
    first, second = (count_block(block(text), Reading(), True, True) for _ in range(2))
    monkeypatch.setattr(word_counts, "_LONGEST_REMEMBERED", -1)
    monkeypatch.setattr(word_counts, "_MEMORY", {})
    assert first == second == count_block(block(text), Reading(), True, True)


def test_ill_formed_bytes_are_counted():
    ill_formed = TextBlock(Source("x", "text"), LineBlock(1, b"a \xff b", 7), True)
    assert count_block(ill_formed, Reading(), True, True).dropped_bytes == 1


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
