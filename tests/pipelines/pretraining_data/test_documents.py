import dataclasses
import io
import lzma
import textwrap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.tokenizer import TokenBlock
from pipelines.pretraining_data import documents
from pipelines.pretraining_data.documents import (
    FileBlock,
    check_partners,
    choose_shards,
    cut_into_blocks,
    encode_block,
    iterate_documents,
    look_at_input,
    read_lines,
)
from pipelines.pretraining_data.recipe import PretrainingDataConfig, Recipe

TEXTS = st.lists(st.sampled_from(["A b.", "C d e.", "", " \t", "\r", "F."]), max_size=30)


def _whole(data: bytes) -> FileBlock:
    return FileBlock("x.txt", 0, len(data))


@given(TEXTS, st.integers(1, 40))
def test_blocks_hold_all_documents_whole(lines, block_bytes):
    data = "\n".join(lines).encode()
    blocks = cut_into_blocks("x.txt", io.BytesIO(data), block_bytes)
    assert b"".join(data[block.start : block.end] for block in blocks) == data
    apart = [
        document
        for block in blocks
        for document in iterate_documents(read_lines(block, data[block.start : block.end]))
    ]
    assert apart == list(iterate_documents(read_lines(_whole(data), data)))


def test_text_without_empty_lines_is_not_taken_into_memory_as_one_document(monkeypatch):
    monkeypatch.setattr(documents, "MOST_BYTES", 1 << 20)
    document = b"a\n" * (1 << 19)
    assert len(cut_into_blocks("x.txt", io.BytesIO(b"a\n\n" + document), 1)) == 2
    with pytest.raises(UserError, match=r"x\.txt: 1 MiB from byte 4 on without an empty line"):
        cut_into_blocks("x.txt", io.BytesIO(b"a\n\n" + document + b"a\n"), 1)


def test_ill_formed_utf8_is_refused_with_its_line():
    data = b"Fine.\nAlso fine.\nNot \xff fine.\n"
    with pytest.raises(UserError, match=r"x.txt: line 3 is not UTF-8"):
        read_lines(_whole(data), data)


def test_ill_formed_utf8_in_a_later_block_is_named_by_its_byte():
    with pytest.raises(UserError, match=r"x.txt: byte 1004 is not UTF-8"):
        read_lines(FileBlock("x.txt", 1000, 1006), b"Not \xff\n")


def test_bytes_of_zero_are_no_text_but_a_few_are_passed_over():
    few = b"A sent\0ence.\n" + b"And another one.\n" * 9
    assert len(read_lines(_whole(few), few)) == 11
    wide = "One sentence.\n\nAnother.\n".encode("utf-16-le")
    with pytest.raises(UserError, match=r"x\.txt: is not UTF-8, .* \(from byte 20 on, 50% of the"):
        read_lines(FileBlock("x.txt", 20, 20 + len(wide)), wide)


def _letters(lines: list[str]) -> TokenBlock:
    """A tokenizer for tests: one token a letter."""
    letters = ["".join(filter(str.isalpha, line)) for line in lines]
    offsets = np.cumsum([0, *map(len, letters)])
    return TokenBlock(np.array([ord(c) for c in "".join(letters)], np.int32), offsets)


def test_sentences_without_a_token_and_documents_without_a_sentence_are_left_out():
    block = encode_block(["ab", "!", "c", "", "?", "", "d"], _letters, np.uint16)
    assert block.ids.tolist() == [97, 98, 99, 100]
    assert block.ids.dtype == np.uint16
    assert block.sentence_lengths.tolist() == [2, 1, 1]
    assert block.document_sizes.tolist() == [2, 1]


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


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (b"PAR1\x15", "is Parquet; write its texts as JSON lines"),
        (b"\xff\xfea\0", "is UTF-16; conv"),
    ],
)
def test_what_is_no_text_is_refused_by_its_first_bytes(start, said):
    with pytest.raises(UserError, match=f"a: {said}"):
        look_at_input("a", io.BytesIO(start), set())


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


def test_a_packed_file_is_sent_to_what_reads_it():
    file = io.BytesIO(lzma.compress(b'{"text": "It rains."}\n'))
    with pytest.raises(UserError, match=r"is packed; unpack it first \(unxz\) or, .* split_sent"):
        cut_into_blocks("a.jsonl.xz", file)
