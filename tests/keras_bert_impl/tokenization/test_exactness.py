"""The promise: not one difference from the reference, over all of Unicode and over real text."""

import itertools
import json
import lzma
import unicodedata

import numpy as np
import pytest

from keras_bert_impl.tokenization import reference
from keras_bert_impl.tokenization.certificate import certify_lines
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support.tokenization import alphabet_vocabulary, by_line, stable_code_points

CASING = {"uncased": True, "cased": False, "multilingual-cased": False}


_A_LINE = 64  # code points


def lines_of(numbers, pattern="a{}b"):
    """Code points between letters, many a line: what one does to the next word shows there."""
    parts = [pattern.format(chr(number)) for number in numbers]
    return [" ".join(parts[start : start + _A_LINE]) for start in range(0, len(parts), _A_LINE)]


@pytest.fixture(scope="module")
def code_points():
    return stable_code_points()


@pytest.fixture(scope="module")
def nameless(code_points):
    """Code points of private use or of none yet: six of seven, and letters to every rule."""
    return np.array(
        [
            unicodedata.category(one) in ("Cn", "Co") and not reference.is_chinese(one)
            for one in map(chr, code_points)
        ]
    )


@pytest.fixture(
    scope="module",
    params=[True, pytest.param(False, marks=pytest.mark.long)],
    ids=["lower case", "as it is"],
)
def words_of_code_points(request, code_points, nameless):
    """The casing, and the code points' words; cutting them is left to each vocabulary."""
    lines = lines_of(np.concatenate([code_points[~nameless], code_points[nameless][::101]]))
    return request.param, lines, [reference.split_words(line, request.param) for line in lines]


def differing(tokenizer, lines, words):
    """The lines whose ids are not those of the reference's tokens of their words."""
    vocabulary = tokenizer.vocabulary
    known = {}
    expected = []
    for line in words:
        for word in line:
            if word not in known:
                tokens = reference.split_tokens(word, vocabulary)
                known[word] = [vocabulary.id_of(token) for token in tokens]
        expected.append([number for word in line for number in known[word]])
    block = tokenizer.encode_lines(lines)
    flat = np.fromiter(itertools.chain.from_iterable(expected), np.int32)
    offsets = np.cumsum([0, *map(len, expected)])
    if np.array_equal(block.ids, flat) and np.array_equal(block.offsets, offsets):
        return []
    found = by_line(block)
    return [
        line for line, ours, theirs in zip(lines, found, expected, strict=True) if ours != theirs
    ]


@pytest.mark.slow
def test_every_code_point_with_a_vocabulary_of_all_alphabets(words_of_code_points):
    do_lower_case, lines, words = words_of_code_points
    tokenizer = Tokenizer(TextSettings(alphabet_vocabulary(), do_lower_case))
    assert differing(tokenizer, lines, words) == []


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_a_word_with_a_nameless_code_point_is_one_unknown_token(
    code_points, nameless, do_lower_case
):
    """The rest of the code points, without the reference, which says so of every 101st above."""
    tokenizer = Tokenizer(TextSettings(Vocabulary([*SPECIAL_TOKENS, *"ab", "##b"]), do_lower_case))
    ids = tokenizer.encode_lines(lines_of(code_points[nameless])).ids
    np.testing.assert_array_equal(ids, [tokenizer.vocabulary.unk_id] * nameless.sum())


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.data
def test_every_code_point_with_the_published_vocabularies(data_folder, words_of_code_points):
    do_lower_case, lines, words = words_of_code_points
    for name in (name for name, lower in CASING.items() if lower == do_lower_case):
        vocabulary = Vocabulary.load(data_folder / "vocab" / f"bert-base-{name}-vocab.txt")
        assert differing(Tokenizer(TextSettings(vocabulary, do_lower_case)), lines, words) == []


@pytest.mark.parametrize("options", [(True, False), (False, True)])
def test_code_points_where_lower_case_and_accents_are_chosen_apart(code_points, options):
    low = code_points[(code_points < 0x3400) | ((code_points >= 0xA000) & (code_points < 0xAC80))]
    lines = lines_of(low)
    words = [reference.split_words(line, *options) for line in lines]
    assert differing(Tokenizer(TextSettings(alphabet_vocabulary(), *options)), lines, words) == []


@pytest.mark.slow
def test_every_code_point_beside_a_capital_sigma(code_points):
    """What a character does to the form of a sigma on either side of it."""
    tokenizer = Tokenizer(TextSettings(alphabet_vocabulary()))
    kept = [*code_points[:0x3100], *code_points[0x3100:0x20000:23]]
    for pattern in ("A{}Σ", "AΣ{}A"):
        lines = lines_of(kept, pattern)
        words = [reference.split_words(line) for line in lines]
        assert differing(tokenizer, lines, words) == []


def paragraphs(path, count):
    with lzma.open(path, "rt", encoding="utf-8") as file:
        documents = (json.loads(line)["text"] for line in file)
        lines = (line for text in documents for line in text.split("\n") if line)
        yield from itertools.islice(lines, count)


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "corpus"), [("uncased", "enwiki-2015"), ("multilingual-cased", "kowiki-2020-sample")]
)
def test_real_text(data_folder, name, corpus):
    """A sample; `tools.benchmarks.tokenizer --task=certify` does all of a corpus."""
    vocabulary = Vocabulary.load(data_folder / "vocab" / f"bert-base-{name}-vocab.txt")
    lines = paragraphs(data_folder / "corpora" / f"{corpus}.jsonl.xz", 4000)
    result = certify_lines(Tokenizer(TextSettings(vocabulary, CASING[name])), lines)
    assert (result.compared, result.first_differences) == (4000, [])
