import contextlib
import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization import reference
from keras_bert_impl.tokenization.learner import LearnerOptions, learn_tokens
from keras_bert_impl.tokenization.reference import split_words
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.corpora.documents import Reading, TextBlock, TextSource
from pipelines.corpora.encodings import LineBlock
from pipelines.corpora.learn_vocabulary import (
    CountedBlock,
    LearnVocabularyConfig,
    count_block,
    learn_vocabulary,
    merge_counts,
)
from tests.support.tokenization import trouble_text


def block(text):
    return TextBlock(TextSource("x", "text"), LineBlock(1, text.encode(), 7), True)


@given(trouble_text(), st.booleans())
def test_counting_parts_between_spaces_is_counting_words(text, do_lower_case):
    # A file holds neither half characters nor NUL, which means UTF-16: both are refused elsewhere.
    text = text.encode("utf-8", "ignore").decode().replace("\0", "")
    line = " ".join(text.split("\n"))
    counted = count_block(block(line + "\n"), Reading(), do_lower_case, do_lower_case)
    words = Counter(reference.split_words(line, do_lower_case))
    assert counted.counts == {word: n for word, n in words.items() if len(word) <= 200}
    assert counted.too_long == words.total() - sum(counted.counts.values())


def blocks(*counts):
    return [CountedBlock(Counter(words), 0) for words in counts]


@given(st.lists(st.text("abcdefghij", max_size=20), max_size=20), st.integers(2, 8))
def test_memory_is_bounded_and_nothing_is_lost_unsaid(texts, most_words):
    counts, dropped = merge_counts(blocks(*texts), most_words)
    assert len(counts) <= most_words
    assert counts.total() + dropped == sum(map(len, texts))


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text.txt").write_text("Low low, lower lowest.\n\nNEW newer newest low!\n" * 50)
    return str(tmp_path / "text.txt")


def learned(text, tmp_path, **options):
    """The vocabulary that is written, and the report."""
    size = options.pop("vocab_size", 33)
    report = learn_vocabulary(
        LearnVocabularyConfig(
            input_file=[text],
            vocab_file=str(tmp_path / "vocab.txt"),
            options=LearnerOptions(size),
            **{"num_workers": 1, **options},
        )
    )
    return Vocabulary.load(tmp_path / "vocab.txt"), report


def test_a_vocabulary_of_exactly_the_asked_size(text, tmp_path):
    vocabulary, report = learned(text, tmp_path)
    assert len(vocabulary) == 33
    assert report[0].startswith(f"33 tokens from {50 * 11} words ")
    assert report[2].startswith("0.00% of words are [UNK]; ")
    assert "low" in vocabulary
    assert "NEW" not in vocabulary


def test_the_number_of_workers_does_not_show(text, tmp_path):
    assert learned(text, tmp_path) == learned(text, tmp_path, num_workers=2)


def test_the_vocabulary_is_that_of_all_words_split_one_by_one(tmp_path):
    text = "东京都的天气很好所以我们今天去公园散步然后回家 lower newest-of-the-new words "
    (tmp_path / "text.txt").write_text(f"{text * 20}{'low' * 70}\n")
    counts = Counter(split_words(text * 20 + "low" * 70))
    expected = learn_tokens(counts, LearnerOptions(60)).vocabulary
    assert learned(str(tmp_path / "text.txt"), tmp_path, vocab_size=60)[0] == expected


def test_a_size_that_cannot_be_reached_leaves_no_file(text, tmp_path):
    with pytest.raises(UserError, match="`vocab_size=5000` cannot be reached"):
        learned(text, tmp_path, vocab_size=5000)
    assert not (tmp_path / "vocab.txt").exists()


# 40 words: 30 of "ab", 6 of "ac" and 4 of "ad"; the characters by how often they occur: a, b, c, d.
LETTERS = "ab ab ab ab ab ac\n" * 4 + "ab ab ab ab ab ac ad ad\n" * 2


@pytest.mark.parametrize(
    ("text", "flags", "word"),
    [
        ("나는 학교에 갔다.\n", {}, "나는 becomes \u1102 \u1161 \u1102 \u1173 \u11ab"),
        ("मैं घर में हूँ।\n", {}, "मैं becomes म"),
        ("나는 학교에 갔다.\n", {"do_lower_case": False}, None),
        ("L'été à Noël, 12.5 % – déjà vu…\n", {}, None),
    ],
)
def test_letters_that_lower_casing_takes_apart_are_warned_of(tmp_path, caplog, text, flags, word):
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": text}))
    settings = {"options": LearnerOptions(vocab_size=60), "num_workers": 1, **flags}
    with contextlib.suppress(UserError):  # so little text may not give as many tokens
        learn_vocabulary(
            LearnVocabularyConfig(
                input_file=[f"{tmp_path}/a.jsonl"], vocab_file=f"{tmp_path}/v.txt", **settings
            )
        )
    said = [message for message in caplog.messages if "parts of letters" in message]
    assert [f"({word})" in message for message in said] == [True] * bool(word)


def test_the_report_says_what_the_limit_on_characters_costs(tmp_path, caplog):
    (tmp_path / "text.txt").write_text(LETTERS)
    config = LearnVocabularyConfig(
        input_file=[str(tmp_path / "text.txt")],
        vocab_file=str(tmp_path / "vocab.txt"),
        options=LearnerOptions(8, limit_alphabet=2),
        num_workers=1,
    )
    # The tokens: five special ones, a, b and ##b.
    assert learn_vocabulary(config) == [
        "8 tokens from 40 words (3 different; 0 dropped as rare or too long)",
        "4 different characters (lower-cased, accents stripped), 2 of them kept",
        "25.00% of words are [UNK]; 2.000 tokens a word of the others; 0.0% of words are one token",
    ]
    assert caplog.messages == [
        "25.0% of words are [UNK] (the text has 4 characters); give `limit_alphabet=4`, and raise "
        "`vocab_size`: these characters alone take 7 tokens."
    ]
    # What is advised is not warned of: one limit and one size are enough.
    caplog.clear()
    advised = replace(config, options=LearnerOptions(13, limit_alphabet=4, min_frequency=1))
    learn_vocabulary(advised)
    assert caplog.messages == []
