import dataclasses
import io
import textwrap

import pytest

from keras_bert_impl.errors import UserError
from pipelines.pretraining_data.recipe import PretrainingDataConfig, Recipe
from pipelines.runners.common import (
    check_partners,
    choose_shards,
    look_at_input,
)

CONFIG = PretrainingDataConfig("text.txt", "out/x", "vocab.txt")


@pytest.mark.parametrize(
    ("examples", "asked", "shards"),
    [
        (0, 0, 1), (1, 0, 1), (65_536, 0, 1), (65_537, 0, 2), (10**12, 0, 1024), (10, 7, 7),
        (10**12, 5000, 5000),
    ],
)  # fmt: skip
def test_there_is_a_shard_for_so_many_examples_unless_a_number_is_asked_for(
    examples, asked, shards
):
    assert choose_shards(examples, asked) == shards


def look_at(*texts):
    told = set()
    for number, text in enumerate(texts):
        look_at_input(f"{number}.txt", io.BytesIO(text.encode()), told)


def test_json_lines_are_no_sentences_and_what_makes_sentences_of_them_is_named():
    with pytest.raises(UserError, match=r"1\.txt: holds JSON, .* split_sentences, which"):
        look_at("One.\n", '{"text": "One."}\n{"text": "Two."}\n')


def test_what_else_is_no_text_is_warned_of(caplog):
    look_at("<doc id='1'>\nA\n", "a\tb\n" * 9)
    pages, table = caplog.messages
    assert table.startswith("1.txt: begins like CSV")
    assert pages.endswith("sentences of plain text, of JSON lines and of WikiExtractor's output.")


def test_lines_that_were_cut_at_one_width_are_no_sentences(caplog):
    prose = "The old house stood at the end of a lane, and nobody had lived there for years. " * 9
    look_at("\n".join(textwrap.wrap(prose, 60)), f"{prose}\n" * 9)
    (message,) = caplog.messages
    assert message.startswith("0.txt: lines seem to be cut at one width, so that they are parts")
    assert "make sentences of the text with split_sentences" in message


@pytest.mark.parametrize(
    ("documents", "sentences", "starts", "recipe", "message"),
    [
        (0, 0, 0, Recipe(do_next_sentence=False), "text.txt: has no sentence with a token"),
        (1, 9, 8, Recipe(), "text.txt: holds one document"),
        (1, 9, 8, Recipe(do_next_sentence=False), None),
        (1, 9, 8, Recipe(same_document_tries=10), None),
        (2, 9, 7, Recipe(), None),
        (5000, 5000, 0, Recipe(), "text.txt: 0 of 5,000 lines can be followed .* that all next"),
        (7, 5000, 0, Recipe(max_seq_length=64), "fill an example of `max_seq_length=64` alone"),
        (5000, 5000, 0, Recipe(do_next_sentence=False), None),
    ],
)
def test_a_corpus_without_partners_is_refused(documents, sentences, starts, recipe, message):
    config = dataclasses.replace(CONFIG, recipe=recipe)
    if message is None:
        check_partners(config, documents, sentences, starts)
        return
    with pytest.raises(UserError, match=message):
        check_partners(config, documents, sentences, starts)
