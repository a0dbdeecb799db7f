from collections import Counter
from pathlib import Path

import pytest

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.learner import LearnerOptions, Merge, learn_pieces
from keras_bert_impl.tokenization.reference import split_words
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.jobs.learn_vocabulary import LearnVocabularyConfig, learn_vocabulary


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text.txt").write_text("Low low, lower lowest.\n\nNEW newer newest low!\n" * 50)
    return str(tmp_path / "text.txt")


def learned(text, tmp_path, **options):
    size = options.pop("vocab_size", 33)
    return learn_vocabulary(
        LearnVocabularyConfig(
            [text],
            str(tmp_path / "vocab.txt"),
            LearnerOptions(size),
            **{"num_workers": 1, **options},
        )
    )


def test_a_vocabulary_of_exactly_the_asked_size(text, tmp_path):
    result = learned(text, tmp_path)
    assert len(result.vocabulary) == 33
    assert Vocabulary.load(tmp_path / "vocab.txt") == result.vocabulary
    assert result.words == 50 * 11
    assert result.coverage.unknown_share == 0
    assert "low" in result.vocabulary
    assert "NEW" not in result.vocabulary


def test_case_is_kept_where_asked_for(text, tmp_path):
    result = learned(text, tmp_path, do_lower_case=False, vocab_size=42)
    assert "NEW" in result.vocabulary


def test_the_first_merges_are_shown_with_their_counts(text, tmp_path):
    merges = learned(text, tmp_path, show_merges=2).merges
    assert merges == [Merge("##o", "##w", 250), Merge("l", "##ow", 250)] or merges == (
        [Merge("l", "##o", 250), Merge("lo", "##w", 250)]
    )


def test_the_number_of_workers_does_not_show(text, tmp_path):
    assert learned(text, tmp_path).vocabulary == learned(text, tmp_path, num_workers=2).vocabulary


def test_memory_is_bounded_by_dropping_rare_words(tmp_path):
    lines = "".join(f"common common w{number:x}\n" for number in range(3000))
    (tmp_path / "text.txt").write_text(lines)
    result = learned(str(tmp_path / "text.txt"), tmp_path, most_words=1000, vocab_size=46)
    assert result.dropped > 0
    assert result.words == 9000
    assert result.different_words <= 1000


def test_words_too_long_to_have_pieces_change_nothing_but_the_count(text, tmp_path):
    expected = learned(text, tmp_path)
    too_long = "z" * 201
    (tmp_path / "more.txt").write_text(f"{Path(text).read_text()}\n{too_long} {too_long}\n")
    result = learned(str(tmp_path / "more.txt"), tmp_path)
    assert result.vocabulary == expected.vocabulary
    assert result.different_words == expected.different_words
    assert (result.words, result.dropped) == (expected.words + 2, 2)


def test_the_vocabulary_is_that_of_all_words_split_one_by_one(tmp_path):
    text = "东京都的天气很好所以我们今天去公园散步然后回家 lower newest-of-the-new words "
    (tmp_path / "text.txt").write_text(f"{text * 20}{'low' * 70}\n")
    counts = Counter(split_words(text * 20 + "low" * 70))
    expected = learn_pieces(counts, LearnerOptions(60)).vocabulary
    assert learned(str(tmp_path / "text.txt"), tmp_path, vocab_size=60).vocabulary == expected


def test_dropped_bytes_are_said_once(tmp_path, caplog):
    (tmp_path / "text.txt").write_bytes(b"lower lowest \xff\n" * 8)
    learned(str(tmp_path / "text.txt"), tmp_path, vocab_size=20)
    assert [message.split(" and ")[0] for message in caplog.messages] == [
        "8 bytes of the input are no UTF-8"
    ]


def test_a_size_that_cannot_be_reached_leaves_no_file(text, tmp_path):
    with pytest.raises(UserError, match="vocab_size=5000 cannot be reached"):
        learned(text, tmp_path, vocab_size=5000)
    assert not (tmp_path / "vocab.txt").exists()
