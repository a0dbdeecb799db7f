"""Rows of questions, held to the original's recorded features and to plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.tokenization.text_settings import TextSettings
from keras_bert_impl.tokenization.tokenizer import Tokenizer
from keras_bert_impl.tokenization.vocabulary import Vocabulary
from pipelines.tasks.questions.files import Passage, PlacedText, Question
from pipelines.tasks.questions.rows import WindowSettings, question_rows
from tests.support.plain_questions import features_of
from tests.support.squad_golden import SETS, SquadGolden

TOKENS = ["a", "b", "e", "##b", "##e", "(", ")", ".", "中", "[", "]", "unk"]
VOCABULARY = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *TOKENS])
TOKENIZER = Tokenizer(TextSettings(VOCABULARY))
TEXTS = st.text(alphabet="abéE(). \t\n\u00a0\u202f\u2028\x01中[]x", max_size=25)


def as_recorded(rows, questions, vocabulary, length):
    """Our rows as the original keeps its features."""
    padded = rows.padded(length)
    for number, row_length in enumerate(rows.lengths):
        starts = padded["text_start"][number]
        inside = np.flatnonzero(padded["text_end"][number])
        word_of = questions[rows.examples[number]].passage.word_of_character
        shown = padded["is_max_context"][number]
        yield {
            "example_index": rows.examples[number],
            "doc_span_index": number - np.searchsorted(rows.examples, rows.examples[number]),
            "tokens": [vocabulary.tokens[x] for x in padded["input_ids"][number, :row_length]],
            "token_to_orig_map": [[position, word_of[starts[position]]] for position in inside],
            "token_is_max_context": [[position, shown[position] > 0] for position in inside],
            **{name: padded[name][number].tolist() for name in ("input_ids", "segment_ids")},
            "input_mask": padded["input_mask"][number].tolist(),
        }


@pytest.mark.data
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("split", ["train", "predict"])
def test_every_field_is_the_originals(data_folder, name, split):
    golden = SquadGolden(data_folder, name)
    recorded = golden.recorded(split)
    rows = golden.rows(training=split == "train")
    assert len(golden.questions) == len(recorded["examples"])
    for question, example in zip(golden.questions, recorded["examples"], strict=True):
        assert question.identifier == example["qas_id"]
        assert len(question.passage.words) == example["doc_tokens"]
        if split == "train":
            words = question.answer_words or (-1, -1)
            assert words == (example["start_position"], example["end_position"])
    ours = list(as_recorded(rows, golden.questions, golden.text.vocabulary, 160))
    assert len(ours) == len(recorded["features"])
    for number, (row, feature) in enumerate(zip(ours, recorded["features"], strict=True)):
        assert feature.pop("unique_id") == 1_000_000_000 + number
        positions = feature.pop("start_position"), feature.pop("end_position")
        impossible = feature.pop("is_impossible")
        assert row == feature
        if split == "train":
            assert positions == tuple(values[number] for values in rows.values.values())
            assert impossible == golden.questions[row["example_index"]].is_impossible


@st.composite
def questions(draw):
    found = []
    for _ in range(draw(st.integers(1, 3))):
        passage = Passage("An article", draw(TEXTS))
        for number in range(draw(st.integers(1, 2))):
            question = Question(str(number), draw(st.text("ab ?", max_size=8)), passage)
            if passage.text and draw(st.booleans()):
                start = draw(st.integers(0, len(passage.text) - 1))
                end = draw(st.integers(start + 1, len(passage.text)))
                answers = (PlacedText(passage.text[start:end], start),)
                answered = Question(question.identifier, question.text, passage, answers)
                question = answered if answered.answer_words else question
            found.append(question)
    return found


@given(questions(), st.integers(9, 16), st.integers(1, 6), st.integers(0, 4))
def test_rows_are_those_of_the_plain_rules(questions, length, stride, most_asked):
    settings = WindowSettings(length, stride, most_asked)
    rows = question_rows(questions, TOKENIZER, settings, training=True)
    padded = rows.padded(length)
    number = 0
    for question in questions:
        expected = features_of(question, VOCABULARY.tokens, settings)
        if not expected:  # a passage without tokens, for which the original has no feature
            assert not padded["segment_ids"][number].any()
            number += 1
        for feature in expected:
            tokens = feature["tokens"]
            ids = padded["input_ids"][number, : rows.lengths[number]]
            assert [VOCABULARY.tokens[x] for x in ids] == tokens
            inside = np.flatnonzero(padded["text_end"][number])
            assert inside.tolist() == list(feature["words"])
            starts = padded["text_start"][number][inside]
            words = question.passage.word_of_character[starts]
            assert words.tolist() == list(feature["words"].values())
            owned = padded["is_max_context"][number][inside]
            assert owned.tolist() == list(feature["is_max_context"].values())
            positions = [values[number] for values in rows.values.values()]
            assert tuple(positions) == feature["positions"]
            number += 1
    assert number == len(rows)


def test_questions_that_are_cut_are_counted():
    passage = Passage("Rain", "a b")
    questions = [Question("x", text, passage) for text in ("a b", "a b a", "a a a a")]
    rows = question_rows(questions, TOKENIZER, WindowSettings(9, 2, 2), training=False)
    assert rows.num_truncated.tolist() == [0, 1, 2]
