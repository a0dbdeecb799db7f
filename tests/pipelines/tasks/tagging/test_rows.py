"""Rows of tagged documents, held to plain loops: every word once, where most is seen around it."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.tasks.tagging.files import Document, Sentence
from pipelines.tasks.tagging.rows import (
    tag_rows,
    token_tags,
    tokenize_characters,
    tokenize_words,
    window_stride,
)
from pipelines.tasks.tagging.schemes import BIOES, IOB2

TOKENS = ["a", "b", "##a", "##b", ".", "한", "##한"]
VOCABULARY = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *TOKENS])
TOKENIZER = Tokenizer(TextSettings(VOCABULARY, do_lower_case=False))
LABELS = IOB2.tags(["X"])
WORDS = st.sampled_from(["a", "ab", "ba.", "한a", "abab", "?", "\u200b"])
SENTENCES = st.lists(st.tuples(WORDS, st.sampled_from(LABELS)), min_size=1, max_size=9)
DOCUMENTS = st.lists(st.lists(SENTENCES, min_size=1, max_size=3), min_size=1, max_size=3)


def document_of(sentences, tagged=True):
    made = []
    for sentence in sentences:
        words, tags = zip(*sentence, strict=True)
        numbers = tuple(range(1, len(words) + 1))
        made.append(Sentence(words, tags if tagged else None, words, numbers))
    return Document(tuple(made))


def plain_rows(document, length, stride):
    """(ids, tag ids, first items, ends) of each window, by loops."""
    tokens = []
    item = 0
    for sentence in document.sentences:
        for word, tag in zip(sentence.items, sentence.tags, strict=True):
            for number, token in enumerate(TOKENIZER.encode(word)):
                mark = (LABELS.index(tag) + 1, item, item + 1) if number == 0 else (0, 0, 0)
                tokens.append((token, *mark))
            item += 1
    size, starts = length - 2, [0]
    while starts[-1] + size < len(tokens):
        starts.append(starts[-1] + min(stride, size))
    windows = [range(start, min(start + size, len(tokens))) for start in starts]

    def context(window, position):
        around = min(position - window.start, window.stop - 1 - position)
        return around + 0.01 * len(window) if position in window else -1

    for number, window in enumerate(windows):
        row = [(VOCABULARY.cls_id, 0, 0, 0)]
        for position in window:
            contexts = [context(other, position) for other in windows]
            own = contexts.index(max(contexts)) == number
            row.append(tokens[position] if own else (tokens[position][0], 0, 0, 0))
        yield [*row, (VOCABULARY.sep_id, 0, 0, 0)]


@given(DOCUMENTS, st.integers(3, 9), st.integers(0, 6))
def test_rows_are_those_of_plain_loops(documents, length, stride):
    made = [document_of(document) for document in documents]
    rows = tag_rows(tokenize_words(made, TOKENIZER, LABELS), TOKENIZER, length, stride)
    expected = [
        (number, row)
        for number, document in enumerate(made)
        for row in plain_rows(document, length, window_stride(length, stride))
    ]
    assert rows.examples.tolist() == [number for number, _ in expected]
    assert rows.lengths.tolist() == [len(row) for _, row in expected]
    flat = np.array([token for _, row in expected for token in row])
    for column, name in enumerate(("input_ids", "tag_ids", "unit_start", "unit_end")):
        assert rows.tokens[name].tolist() == flat[:, column].tolist()


@given(DOCUMENTS, st.integers(3, 9))
def test_every_word_with_a_token_is_predicted_once_and_in_order(documents, length):
    made = [document_of(document, tagged=False) for document in documents]
    rows = tag_rows(tokenize_words(made, TOKENIZER, LABELS), TOKENIZER, length, 0)
    assert "tag_ids" not in rows.tokens
    owned = rows.tokens["unit_end"] > 0
    found = zip(
        np.repeat(rows.examples, rows.lengths)[owned], rows.tokens["unit_start"][owned], strict=True
    )
    expected = [
        (number, item)
        for number, document in enumerate(made)
        for item, word in enumerate(w for s in document.sentences for w in s.items)
        if TOKENIZER.encode(word)
    ]
    assert [*found] == expected


def characters(text, tags):
    numbers = tuple(range(1, len(text) + 1))
    return Document((Sentence(tuple(text), tuple(tags), tuple(text), numbers),))


def test_a_token_has_the_tag_of_its_first_character():
    """a|##b .|한: the entity is "b 한", whose first token begins before it."""
    document = characters("ab 한a", ["O", "B-X", "I-X", "I-X", "O"])
    tokens = tokenize_characters([document, document], TOKENIZER, LABELS, IOB2)
    assert [VOCABULARY.tokens[x] for x in tokens.ids[:4]] == ["a", "##b", "한", "##a"]
    assert tokens.labels.tolist() == [1, 2, 3, 1] * 2
    assert tokens.start.tolist() == [0, 1, 3, 4] * 2
    assert tokens.end.tolist() == [1, 2, 4, 5] * 2


def test_tokens_tags_are_written_in_the_scheme_of_the_characters():
    starts = np.array([0, 3, 4, 6])
    tags = ["B-X", "I-X", "I-X", "E-X", "S-X", "B-X", "E-X", "O"]
    # The last entity begins inside the third token.
    assert token_tags(tags, starts, BIOES) == ["B-X", "E-X", "S-X", "S-X"]
    assert token_tags(["O", "S-X", "O"], np.array([0]), BIOES) == ["O"]


@pytest.mark.parametrize(
    "tokenize", [tokenize_words, lambda *arguments: tokenize_characters(*arguments, IOB2)]
)
def test_a_tag_that_the_model_does_not_know_is_named_with_its_line(tokenize):
    words = ("a", "b")
    sentence = Sentence(words, ("O", "B-LOC"), words, (1, 2), path=Path("t.txt"))
    with pytest.raises(UserError, match=r"t\.txt: line 2 has the tag 'B-LOC', .* O, B-X, I-X\."):
        tokenize([Document((sentence,))], TOKENIZER, LABELS)
