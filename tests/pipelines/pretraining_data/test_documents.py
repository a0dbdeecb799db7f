import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import UserError
from keras_bert_impl.tokenization.tokenizer import TokenBlock
from pipelines.pretraining_data import documents
from pipelines.pretraining_data.documents import (
    TextBlock,
    cut_into_blocks,
    encode_block,
    iterate_documents,
    read_lines,
)

TEXTS = st.lists(st.sampled_from(["A b.", "C d e.", "", " \t", "\r", "F."]), max_size=30)


def _whole(data: bytes) -> TextBlock:
    return TextBlock("x.txt", 0, len(data))


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
        read_lines(TextBlock("x.txt", 1000, 1006), b"Not \xff\n")


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


@pytest.mark.parametrize("longest", [5000, 5001])
def test_a_line_longer_than_any_sentence_is_refused_by_its_place(monkeypatch, longest):
    monkeypatch.setattr(documents, "MOST_LINE_BYTES", 5000)
    data = b"One.\nTwo.\n" + b"x" * longest + b"\nThree."
    block = TextBlock("x.txt", 100, 100 + len(data))
    if longest == 5000:
        assert len(read_lines(block, data)) == 4
    else:
        with pytest.raises(UserError, match=r"x\.txt: the line at byte 110 has more than"):
            read_lines(block, data)
